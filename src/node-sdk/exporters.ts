/** Exporters with what the plugin adds to them: an end that comes in time. */
import { readFileSync } from 'node:fs'
import type { Agent as HttpAgent } from 'node:http'
import type { AgentOptions, Agent as HttpsAgent } from 'node:https'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { ResolvedConfig, Protocol, Signal } from './config.ts'
import { readEnv } from './environment.ts'

/** Connections of one exporter; the SDK cannot cut an export short, closing its connections does. */
export class Connections {
  readonly #signal: Signal
  readonly #agents: (HttpAgent | HttpsAgent)[] = []
  #refusing = false

  constructor(signal: Signal) {
    this.#signal = signal
  }

  /** Factory for the exporter. */
  readonly createAgent = async (protocol: string): Promise<HttpAgent | HttpsAgent> => {
    const agent =
      protocol === 'http:'
        ? new (await import('node:http')).Agent({ keepAlive: true })
        : new (await import('node:https')).Agent({ keepAlive: true, ...this.#certificates() })
    this.#agents.push(agent)
    if (this.#refusing) this.refuse()
    return agent
  }

  /** Open no connection any more: an export that wants to try again fails at once. Those under way go on. */
  refuse(): void {
    this.#refusing = true
    for (const agent of this.#agents) agent.createConnection = fail
  }

  /** Cut what is under way. */
  close(): void {
    this.refuse()
    for (const agent of this.#agents) {
      for (const sockets of Object.values(agent.sockets)) for (const socket of sockets ?? []) socket.destroy(closed())
      agent.destroy()
    }
  }

  /** An agent of ours replaces the exporter's own, and the certificate variables with it. */
  #certificates(): AgentOptions {
    return {
      ca: this.#file('CERTIFICATE'),
      cert: this.#file('CLIENT_CERTIFICATE'),
      key: this.#file('CLIENT_KEY'),
    }
  }

  #file(kind: string): Buffer | undefined {
    const path =
      readEnv(`OTEL_EXPORTER_OTLP_${this.#signal.toUpperCase()}_${kind}`) ?? readEnv(`OTEL_EXPORTER_OTLP_${kind}`)
    return path === undefined ? undefined : readFileSync(path)
  }
}

function fail(_options: unknown, done?: (error: Error | null, stream: never) => void): undefined {
  done?.(closed(), undefined as never)
}

/** An error the exporter takes as final: with a network error code it would try again. */
function closed(): Error {
  return Object.assign(new Error('the endpoint did not take it before the plugin was unloaded'), {
    code: 'CHECKPOINT_TELEMETRY_CLOSED',
  })
}

/** OTLP exporter for spans. */
export async function createSpanExporter(
  protocol: Protocol,
  config: ResolvedConfig,
  connections: Connections,
): Promise<SpanExporter> {
  const options = optionsOf('traces', protocol, config, connections)
  switch (protocol) {
    case 'http/protobuf':
      return new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter(options)
    case 'http/json':
      return new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter(options)
    case 'grpc':
      return new (await import('@opentelemetry/exporter-trace-otlp-grpc')).OTLPTraceExporter(options)
  }
}

/** OTLP exporter for metrics. */
export async function createMetricExporter(
  protocol: Protocol,
  config: ResolvedConfig,
  connections: Connections,
  timeoutMillis: number,
): Promise<PushMetricExporter> {
  const options = { ...optionsOf('metrics', protocol, config, connections), timeoutMillis }
  switch (protocol) {
    case 'http/protobuf':
      return new (await import('@opentelemetry/exporter-metrics-otlp-proto')).OTLPMetricExporter(options)
    case 'http/json':
      return new (await import('@opentelemetry/exporter-metrics-otlp-http')).OTLPMetricExporter(options)
    case 'grpc':
      return new (await import('@opentelemetry/exporter-metrics-otlp-grpc')).OTLPMetricExporter(options)
  }
}

/** Fields that are absent are left to the exporter, which reads its variables. */
function optionsOf(signal: Signal, protocol: Protocol, config: ResolvedConfig, connections: Connections): object {
  const { endpoint, exportTimeoutMs, headers } = config
  const limit = exportTimeoutMs === undefined ? {} : { timeoutMillis: exportTimeoutMs }
  if (protocol === 'grpc') return endpoint === undefined ? limit : { ...limit, url: endpoint }
  const url = endpoint === undefined ? {} : { url: `${endpoint.replace(/\/+$/, '')}/v1/${signal}` }
  return { ...limit, ...url, headers, httpAgentOptions: connections.createAgent }
}
