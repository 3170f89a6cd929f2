/** One running NodeSDK: built from plan and configuration, stopped within a bound. */
import { diag } from '@opentelemetry/api'
import { ATTR_SERVICE_NAME } from '../semconv.ts'
import type { ResolvedConfig } from './config.ts'
import { Connections, createMetricExporter, createSpanExporter } from './exporters.ts'
import { readPositive, type Plan } from './environment.ts'
import { holderOf, type Registration } from './globals.ts'

/** A started SDK. */
export interface RunningSdk {
  /** Send what is left and end within `shutdownTimeoutMs`; never rejects. The globals are given back before. */
  stop(): Promise<void>
}

/** Build and register an SDK. Throws what its parts throw; nothing is registered then. */
export async function startSdk(plan: Plan, config: ResolvedConfig, registration: Registration): Promise<RunningSdk> {
  const [{ NodeSDK }, { defaultResource, envDetector, resourceFromAttributes, serviceInstanceIdDetector }] =
    await Promise.all([import('@opentelemetry/sdk-node'), import('@opentelemetry/resources')])
  const connections = [new Connections('traces'), new Connections('metrics')] as const
  const spanProcessors = await createSpanProcessors(plan, config, connections[0])
  const metricReaders = await createMetricReaders(plan, config, connections[1])
  const sdk = withEnv({ OTEL_LOG_LEVEL: undefined }, () => {
    return new NodeSDK({
      spanProcessors,
      metricReaders,
      instrumentations: [],
      resource: defaultResource().merge(resourceFromAttributes({ [ATTR_SERVICE_NAME]: DEFAULT_SERVICE })),
      // The default detectors ship the command line, which can hold a prompt.
      resourceDetectors: [serviceInstanceIdDetector, envDetector],
      serviceName: config.serviceName,
      // null leaves alone what somebody else registered.
      ...(holderOf('context') === undefined ? {} : { contextManager: null as never }),
      ...(holderOf('propagation') === undefined ? {} : { textMapPropagator: null }),
    })
  })
  // An empty list of log processors would still take the global logger provider away from the host.
  registration.take(() => withEnv({ OTEL_LOGS_EXPORTER: 'none' }, () => sdk.start()))
  return { stop: () => stop(sdk, connections, config.shutdownTimeoutMs) }
}

/** Service name where neither configuration nor variables have one. */
const DEFAULT_SERVICE = 'dsh'

async function createSpanProcessors({ exporters, protocols }: Plan, config: ResolvedConfig, connections: Connections) {
  if (exporters.traces.length === 0) return []
  const { BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor } = await import('@opentelemetry/sdk-trace')
  return Promise.all(
    exporters.traces.map(async (name) => {
      if (name === 'console') return new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() })
      return new BatchSpanProcessor({
        exporter: await createSpanExporter(protocols.traces, config, connections),
        maxQueueSize: readPositive('OTEL_BSP_MAX_QUEUE_SIZE'),
        scheduledDelayMillis: readPositive('OTEL_BSP_SCHEDULE_DELAY'),
        exportTimeoutMillis: readPositive('OTEL_BSP_EXPORT_TIMEOUT'),
        maxExportBatchSize: readPositive('OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
      })
    }),
  )
}

async function createMetricReaders({ exporters, protocols }: Plan, config: ResolvedConfig, connections: Connections) {
  if (exporters.metrics.length === 0) return []
  const { ConsoleMetricExporter, PeriodicExportingMetricReader } = await import('@opentelemetry/sdk-metrics')
  const exportIntervalMillis = config.metricsIntervalMs ?? readPositive('OTEL_METRIC_EXPORT_INTERVAL') ?? 60_000
  // An export under way keeps the process alive. Without a pause between two of them, a dead endpoint would do so for ever.
  const exportTimeoutMillis = Math.min(readPositive('OTEL_METRIC_EXPORT_TIMEOUT') ?? 30_000, exportIntervalMillis)
  const exportTimeoutMs = Math.min(config.exportTimeoutMs ?? timeoutFromEnv() ?? 10_000, exportIntervalMillis / 2)
  return Promise.all(
    exporters.metrics.map(async (name) => {
      const exporter =
        name === 'console'
          ? new ConsoleMetricExporter()
          : await createMetricExporter(protocols.metrics, config, connections, exportTimeoutMs)
      return new PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis })
    }),
  )
}

const timeoutFromEnv = () =>
  readPositive('OTEL_EXPORTER_OTLP_METRICS_TIMEOUT') ?? readPositive('OTEL_EXPORTER_OTLP_TIMEOUT')

async function stop(
  sdk: { shutdown(): Promise<void> },
  connections: readonly Connections[],
  timeoutMs: number,
): Promise<void> {
  const { promise: expired, resolve: expire } = Promise.withResolvers<boolean>()
  // Not unref'd: while the last export runs, nothing else may keep the process alive.
  const timers = [
    setTimeout(() => connections.forEach((each) => each.refuse()), timeoutMs / 2),
    setTimeout(() => expire(false), timeoutMs),
  ]
  const done = sdk.shutdown().then(
    () => true,
    (error: unknown) => {
      diag.error('the last export failed', error instanceof Error ? error : String(error))
      return true
    },
  )
  const inTime = await Promise.race([done, expired])
  for (const timer of timers) clearTimeout(timer)
  if (!inTime) diag.warn(`the last export did not end within ${timeoutMs} ms and was given up`)
  for (const each of connections) each.close()
}

/** Run `action` with other variables: the SDK reads some that it would act on in a way that is not ours. */
function withEnv<R>(variables: Readonly<Record<string, string | undefined>>, action: () => R): R {
  const before = Object.keys(variables).map((key) => [key, process.env[key]] as const)
  const set = (entries: Iterable<readonly [string, string | undefined]>) => {
    for (const [key, value] of entries) {
      if (value === undefined) delete process.env[key]
      else process.env[key] = value
    }
  }
  try {
    set(Object.entries(variables))
    return action()
  } finally {
    set(before)
  }
}
