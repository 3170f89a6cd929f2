/**
 * The OpenTelemetry SDK inside the app, for those who cannot add `--import` to their command line: traces and metrics over
 * OTLP. The OTEL_* variables work as documented and the configuration overrides them.
 *
 * It shares the process: what another SDK registered is left alone, and at unload exactly what was registered here is
 * given back. It installs no signal handler, never ends the process, and never fails the host's boot.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import { diag } from '@opentelemetry/api'
import { resolve } from './config.ts'
import { createLogger, LimitedLog } from './log.ts'
import { Config, PLUGIN, SIGNALS, type Signal } from './node-sdk/config.ts'
import { createDiagLogger, createRedactor, diagLevel, originOf } from './node-sdk/diagnostics.ts'
import { planOf, readEnv, type Plan } from './node-sdk/environment.ts'
import { apiVersion, holderOf, isOwn, ownerName, Registration, registryVersion } from './node-sdk/globals.ts'
import { processState } from './node-sdk/process.ts'
import { startSdk, type RunningSdk } from './node-sdk/sdk.ts'
import type { Slot } from './telemetry/registry.ts'

export { Config } from './node-sdk/config.ts'

export const name = PLUGIN
export const inject: string[] = []

/**
 * Start the SDK. Mount it before or after the policy: instruments follow the providers.
 * @param ctx - plugin context that owns the SDK.
 * @param given - see {@link Config}; zero config exports to http://localhost:4318.
 * @returns a promise that resolves when the SDK runs or was left out; it never rejects.
 */
export async function apply(ctx: Context, given?: Config): Promise<void> {
  const config = resolve(Config, given)
  const logger = createLogger(ctx, PLUGIN)
  const log = new LimitedLog(logger)
  const redact = createRedactor(config)
  const registration = new Registration()
  const state = processState()
  let unloaded = false
  let running: RunningSdk | undefined

  const once = (message: string) => {
    if (state.isNews(message)) logger.warn(message)
  }
  const start = async () => {
    if (unloaded) return
    const plan = admit(planOf(config), once)
    if (plan === undefined) return
    try {
      if (holderOf('diag') === undefined || isOwn('diag')) {
        const diagLogger = createDiagLogger(logger, log, redact)
        registration.take(() => diag.setLogger(diagLogger, { logLevel: diagLevel(), suppressOverrideMessage: true }))
      }
      running = await startSdk(plan, config, registration)
      logger.info(summaryOf(plan, config))
    } catch (error) {
      registration.release()
      logger.error(`${PLUGIN} did not start, the host goes on without it: ${redact(messageOf(error))}`)
    }
  }
  // Registered before the first await: an unload during the start waits for it and takes everything back.
  const starting = state.enqueue(start)
  ctx.effect(
    () => async () => {
      unloaded = true
      await state.enqueue(async () => {
        // Plugins that unload together with this one end their spans in this turn of the event loop.
        await nextTurn()
        registration.release('trace', 'metrics', 'propagation', 'context')
      })
      // Outside the queue: who comes next need not wait for a dead endpoint.
      await running?.stop()
      registration.release('diag')
    },
    'OpenTelemetry SDK',
  )
  await starting
}

/** Reduce the plan to what this process has room for; undefined when nothing is left. */
function admit(plan: Plan, say: (message: string) => void): Plan | undefined {
  if (plan.disabled) return undefined
  for (const refusal of plan.refusals) say(`${PLUGIN}: ${refusal}`)
  const version = apiVersion()
  if (version !== undefined && isOlder(version)) {
    say(
      `${PLUGIN} needs @opentelemetry/api ${NEEDED_API.join('.')} or newer and found ${version}: no telemetry is exported`,
    )
    return undefined
  }
  const made = registryVersion()
  if (made !== undefined && version !== undefined && made !== version) {
    say(
      `${PLUGIN}: this process uses @opentelemetry/api ${made} and this package was given ${version}: ` +
        'two copies do not share telemetry, so none is exported here; install one version',
    )
    return undefined
  }
  const exporters = { ...plan.exporters }
  for (const signal of SIGNALS) {
    const slot = SLOT_OF[signal]
    if (exporters[signal].length === 0 || holderOf(slot) === undefined) continue
    say(`${PLUGIN}: ${signal} are already registered by ${ownerName(slot)} and are left to it`)
    exporters[signal] = []
  }
  if (SIGNALS.every((signal) => exporters[signal].length === 0)) return undefined
  return { ...plan, exporters }
}

const SLOT_OF: Readonly<Record<Signal, Slot>> = { traces: 'trace', metrics: 'metrics' }
/** Importing the SDK crashes on an older API. */
const NEEDED_API = [1, 10] as const

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < NEEDED_API[0] || (major === NEEDED_API[0] && minor < NEEDED_API[1])
}

function summaryOf({ exporters, protocols }: Plan, config: Config): string {
  const parts = SIGNALS.filter((signal) => exporters[signal].length > 0).map((signal) => {
    const endpoint =
      config.endpoint ??
      readEnv(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`) ??
      readEnv('OTEL_EXPORTER_OTLP_ENDPOINT')
    const places = exporters[signal].map((exporter) => {
      if (exporter === 'console') return 'console'
      return `OTLP ${protocols[signal]} at ${endpoint === undefined ? 'the default endpoint' : originOf(endpoint)}`
    })
    return `${signal} to ${places.join(' and ')}`
  })
  return `exporting ${parts.join(', ')}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
