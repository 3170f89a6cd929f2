/** Configuration of the SDK plugin. A field that is left out is decided by the OTEL_* variables. */
import z from '@deepseek-ai/schemastery'
import { checked, type Resolved } from '../config.ts'
import { MAX_TIMER_MS } from '../strategy.ts'

/** Plugin name, also the beginning of its messages. */
export const PLUGIN = 'checkpoint-node-sdk'

/** What can be exported. */
export const SIGNALS = ['traces', 'metrics'] as const
export type Signal = (typeof SIGNALS)[number]

/** Encodings of OTLP. */
export const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** Configuration of the SDK plugin. Each field overrides the variable it names. */
export interface Config {
  /** What to export, whatever `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` switch off. */
  signals?: Signal[]
  /** `OTEL_SERVICE_NAME`; `dsh` where neither says anything. */
  serviceName?: string
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the base URL, without `/v1/traces`. */
  endpoint?: string
  /** `OTEL_EXPORTER_OTLP_PROTOCOL`. */
  protocol?: Protocol
  /** Added to those of `OTEL_EXPORTER_OTLP_HEADERS`; over HTTP only. Never logged. */
  headers?: Record<string, string>
  /** `OTEL_METRIC_EXPORT_INTERVAL`, in milliseconds. */
  metricsIntervalMs?: number
  /** `OTEL_EXPORTER_OTLP_TIMEOUT`: one export with its retries, in milliseconds; for metrics at most half their interval. */
  exportTimeoutMs?: number
  /**
   * Longest time that unloading waits for the last export, in milliseconds. A retry that the exporter had scheduled before
   * may keep an otherwise finished process for up to 5 s more.
   */
  shutdownTimeoutMs?: number
}

/** {@link Config} with its defaults filled in; what has none is decided by the variables. */
export type ResolvedConfig = Resolved<
  Config,
  'signals' | 'serviceName' | 'endpoint' | 'protocol' | 'metricsIntervalMs' | 'exportTimeoutMs'
>

const MILLISECONDS = `a number of milliseconds from 1 to ${MAX_TIMER_MS}`
const milliseconds = () => z.number().min(1).max(MAX_TIMER_MS)

/** Schema of {@link Config}; the only place where defaults live. */
export const Config: z<Config, ResolvedConfig> = checked<Config, ResolvedConfig>(
  PLUGIN,
  z.object({
    signals: z
      .array(z.union([...SIGNALS]))
      // Left out is not the same as empty: then the variables decide.
      .default(undefined as never)
      .description('What to export: traces, metrics. Empty: what OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER say.'),
    serviceName: z.string().description('Name of this service. Empty: OTEL_SERVICE_NAME, else dsh.'),
    endpoint: z
      .string()
      .description('Base URL of the collector. Empty: OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318.'),
    protocol: z.union([...PROTOCOLS]).description('Encoding. Empty: OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf.'),
    headers: z
      .dict(z.string().role('secret'))
      .description('Headers of each export, added to OTEL_EXPORTER_OTLP_HEADERS.'),
    metricsIntervalMs: milliseconds().description(
      'Time between two exports of metrics. Empty: OTEL_METRIC_EXPORT_INTERVAL.',
    ),
    exportTimeoutMs: milliseconds().description('Limit on one export. Empty: OTEL_EXPORTER_OTLP_TIMEOUT.'),
    shutdownTimeoutMs: milliseconds().default(3_000).description('Longest wait for the last export at unload.'),
  }),
  {
    signals: 'a list of traces and metrics',
    serviceName: 'a text that is not empty',
    endpoint: 'an http or https URL',
    protocol: `one of ${PROTOCOLS.join(', ')}`,
    headers: 'an object of header names and texts',
    metricsIntervalMs: MILLISECONDS,
    exportTimeoutMs: MILLISECONDS,
    shutdownTimeoutMs: MILLISECONDS,
  },
  { serviceName: (text) => text.trim() !== '', endpoint: isHttpUrl, headers: areHeaders },
)

hideSecrets(Config)

/** A refused header or URL is not shown: it may be right but for one character. */
function hideSecrets(schema: object): void {
  const { '~standard': standard } = schema as {
    '~standard': { validate: (this: void, input: unknown) => { issues?: { message: string }[] } }
  }
  const { validate } = standard
  standard.validate = (input) => {
    const result = validate(input)
    for (const issue of result.issues ?? [])
      issue.message = issue.message.replace(/(: (?:headers|endpoint) must be .*?), got .*/s, '$1')
    return result
  }
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

/** What `node:http` accepts: anything else would fail at each export, long after load. */
function areHeaders(headers: Record<string, string>): boolean {
  return Object.entries(headers).every(
    ([key, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(key) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value),
  )
}
