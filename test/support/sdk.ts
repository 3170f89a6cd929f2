/** A real OpenTelemetry SDK in memory, registered as the process' own and taken away with the test. */
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { MeterProvider, MetricReader, type DataPoint, type Histogram } from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace'
import { onTestFinished } from 'vitest'

class PullReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** What the SDK holds. */
export interface Sdk {
  spans(): ReadableSpan[]
  /** Points of one instrument, `[attributes, value]`; a histogram's value is its count. */
  points(name: string): Promise<[Record<string, unknown>, number][]>
  /** Histogram points with their buckets. */
  histogram(name: string): Promise<DataPoint<Histogram>[]>
  names(): Promise<string[]>
  shutdown(): Promise<void>
}

/** Register tracer, meter and context manager as the process' own. */
export function registerSdk(): Sdk {
  const exporter = new InMemorySpanExporter()
  const reader = new PullReader()
  const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  const meterProvider = new MeterProvider({ readers: [reader] })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(tracerProvider)
  metrics.setGlobalMeterProvider(meterProvider)
  const unregister = () => {
    for (const api of [context, trace, metrics]) api.disable()
  }
  onTestFinished(unregister)
  const collect = async () => {
    const { resourceMetrics } = await reader.collect()
    return resourceMetrics.scopeMetrics
      .filter(({ scope }) => scope.name === 'dsh-checkpoint-otel')
      .flatMap(({ metrics: all }) => all)
  }
  const find = async (name: string) => (await collect()).find(({ descriptor }) => descriptor.name === name)
  return {
    spans: () => exporter.getFinishedSpans(),
    async points(name) {
      const metric = await find(name)
      return (metric?.dataPoints ?? []).map(({ attributes, value }) => [
        attributes,
        typeof value === 'number' ? value : (value as Histogram).count,
      ])
    },
    histogram: async (name) => ((await find(name))?.dataPoints ?? []) as DataPoint<Histogram>[],
    names: async () => (await collect()).map(({ descriptor }) => descriptor.name),
    async shutdown() {
      unregister()
      await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
    },
  }
}
