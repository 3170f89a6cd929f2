/** The OTEL_* variables that this plugin answers to; exporters and the SDK read the rest themselves. */
import { PROTOCOLS, SIGNALS, type ResolvedConfig, type Protocol, type Signal } from './config.ts'

/** Where one signal goes. Empty: nowhere. */
export type Exporters = readonly ('otlp' | 'console')[]

/** What to start, from variables and configuration together. */
export interface Plan {
  /** `OTEL_SDK_DISABLED`. */
  readonly disabled: boolean
  readonly exporters: Readonly<Record<Signal, Exporters>>
  readonly protocols: Readonly<Record<Signal, Protocol>>
  /** One sentence for each thing that was asked for and is not done, with a way out. */
  readonly refusals: readonly string[]
}

/** A variable as the specification reads it: an empty one is not set. */
export function readEnv(name: string): string | undefined {
  return process.env[name]?.trim() || undefined
}

/** Read a positive number, or undefined when it is absent or none. */
export function readPositive(name: string): number | undefined {
  const value = Number(readEnv(name))
  return Number.isFinite(value) && value > 0 ? value : undefined
}

/** Decide what to start; never throws. */
export function planOf(config: ResolvedConfig): Plan {
  const refusals = [...unsupported()]
  const exportersOf = (signal: Signal): Exporters => {
    const wanted = config.signals?.includes(signal)
    if (wanted === false) return []
    const names = listOf(`OTEL_${signal.toUpperCase()}_EXPORTER`)
    const exporters = names.includes('none') || names.length === 0 ? ['none'] : names
    // "none" next to Config.signals: the configuration wins. Nothing said: the default of the specification.
    if (exporters[0] === 'none') return names.length === 0 || wanted === true ? ['otlp'] : []
    return exporters.filter((name): name is 'otlp' | 'console' => {
      if (name === 'otlp' || name === 'console') return true
      refusals.push(refusalOf(signal, name))
      return false
    })
  }
  const protocolOf = (signal: Signal): Protocol => {
    const name =
      config.protocol ??
      readEnv(`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_PROTOCOL`) ??
      readEnv('OTEL_EXPORTER_OTLP_PROTOCOL')
    if (name === undefined) return DEFAULT_PROTOCOL
    const protocol = PROTOCOLS.find((known) => known === name)
    if (protocol === undefined) {
      refusals.push(
        `OTEL_EXPORTER_OTLP_PROTOCOL=${name} is not one of ${PROTOCOLS.join(', ')}: ${signal} use ${DEFAULT_PROTOCOL}`,
      )
    }
    return protocol ?? DEFAULT_PROTOCOL
  }
  const each = <T>(read: (signal: Signal) => T) =>
    ({ traces: read('traces'), metrics: read('metrics') }) satisfies Record<Signal, T>
  const exporters = each(exportersOf)
  const protocols = each(protocolOf)
  for (const signal of SIGNALS) {
    if (protocols[signal] === 'grpc' && exporters[signal].includes('otlp') && Object.keys(config.headers).length > 0) {
      refusals.push(`the field headers is not sent over grpc: set OTEL_EXPORTER_OTLP_HEADERS for ${signal}`)
    }
  }
  return { disabled: readEnv('OTEL_SDK_DISABLED')?.toLowerCase() === 'true', exporters, protocols, refusals }
}

const DEFAULT_PROTOCOL: Protocol = 'http/protobuf'

function refusalOf(signal: Signal, name: string): string {
  const variable = `OTEL_${signal.toUpperCase()}_EXPORTER=${name}`
  if (name === 'prometheus')
    return `${variable} is not supported here: mount dsh-checkpoint-otel/prometheus, which needs no SDK`
  return `${variable} is not supported: send otlp to a collector, which converts it; console and none work too`
}

function* unsupported(): Generator<string> {
  if (readEnv('OTEL_CONFIG_FILE') !== undefined) {
    yield 'OTEL_CONFIG_FILE is not read: use the other OTEL_* variables, or start your own SDK with node --import'
  }
  const logs = listOf('OTEL_LOGS_EXPORTER')
  if (logs.length > 0 && !logs.includes('none')) {
    yield 'OTEL_LOGS_EXPORTER is not supported: logs are not exported; start your own SDK with node --import for them'
  }
  const detectors = listOf('OTEL_NODE_RESOURCE_DETECTORS').filter(
    (name) => !['none', 'env', 'serviceinstance', 'service'].includes(name),
  )
  if (detectors.length > 0) {
    yield (
      `OTEL_NODE_RESOURCE_DETECTORS=${detectors.join()} is not used, because command lines can hold prompts: ` +
      'put what you need into OTEL_RESOURCE_ATTRIBUTES'
    )
  }
}

function listOf(name: string): string[] {
  const names = (readEnv(name) ?? '').split(',').map((part) => part.trim())
  return [...new Set(names)].filter((part) => part !== '')
}
