/** The SDK plugin in a process that it shares: with other SDKs, with itself, with another copy of the API. */
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import * as sc from '../src/semconv.ts'
import { createApp } from './support/app.ts'
import { createOtlpReceiver } from './support/otlp.ts'
import { barriersIn, configOf, forgetProcess, forgetRegistry, slots, turn } from './support/sdk-plugin.ts'

afterEach(() => {
  vi.unstubAllEnvs()
  forgetProcess()
})

test('leaves traces to an SDK that has them, says so by name once, and does not end it', async () => {
  const receiver = await createOtlpReceiver()
  const ended: string[] = []
  const provider = new TracerProvider({
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: ({ name }) => void ended.push(name),
        forceFlush: async () => {},
        shutdown: async () => void ended.push('shutdown'),
      },
    ],
  })
  trace.setGlobalTracerProvider(provider)
  const manager = new AsyncLocalStorageContextManager().enable()
  context.setGlobalContextManager(manager)
  onTestFinished(() => [trace, context, metrics].forEach((api) => api.disable()))
  const app = await createApp()
  for (let round = 0; round < 3; round += 1) await (await app.mount(nodeSdk, configOf(receiver))).dispose()
  await turn(app)
  expect(app.logs.filter((line) => line.includes('traces are already registered by TracerProvider'))).toHaveLength(1)
  expect(slots()).toEqual(['context', 'trace'])
  expect(ended).toContain('checkpoint request')
  expect(ended).not.toContain('shutdown')
  expect(barriersIn(receiver)).toEqual([])
})

test('stays out altogether when another SDK has both signals', async () => {
  const receiver = await createOtlpReceiver()
  trace.setGlobalTracerProvider(new TracerProvider())
  const meters = new MeterProvider()
  metrics.setGlobalMeterProvider(meters)
  onTestFinished(() => [trace, metrics].forEach((api) => api.disable()))
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  expect(slots()).toEqual(['metrics', 'trace'])
  await sdk.dispose()
  expect(metrics.getMeterProvider()).toBe(meters)
  expect(slots()).toEqual(['metrics', 'trace'])
  expect(receiver.requests).toEqual([])
})

test('a second mount makes room for the first', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const first = await app.mount(nodeSdk, configOf(receiver))
  const meters = metrics.getMeterProvider()
  const second = await app.mount({ ...nodeSdk }, configOf(receiver))
  expect(app.logs.join('\n')).toContain('metrics are already registered by another mount of checkpoint-node-sdk')
  await second.dispose()
  expect(metrics.getMeterProvider()).toBe(meters)
  await turn(app)
  await first.dispose()
  expect(receiver.total(sc.METRIC_BARRIER_DURATION)).toBe(3)
})

test('keeps its hands off a diag logger and a propagator of the host', async () => {
  const receiver = await createOtlpReceiver()
  const lines: unknown[] = []
  const logger = {
    error: (line: string) => lines.push(line),
    warn: () => {},
    info: () => {},
    debug: () => {},
    verbose: () => {},
  }
  diag.setLogger(logger)
  const propagator = { inject() {}, extract: <T>(active: T) => active, fields: () => [] }
  propagation.setGlobalPropagator(propagator)
  onTestFinished(() => [diag, propagation].forEach((api) => api.disable()))
  vi.stubEnv('OTEL_LOG_LEVEL', 'error')
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  diag.error('from the host')
  await sdk.dispose()
  expect(lines).toEqual(['from the host'])
  expect(slots()).toEqual(['diag', 'propagation'])
})

test('[D10] a host on another copy of the API is told, and keeps its telemetry', async () => {
  // The earlier tests made it with the new copy.
  forgetRegistry()
  onTestFinished(forgetRegistry)
  const old = await import('otel-api-1.9')
  const provider = { getTracer: () => ({}) }
  old.trace.setGlobalTracerProvider(provider as never)
  const app = await createApp({ plugins: [[policy], [nodeSdk], [{ ...nodeSdk }]] })
  await turn(app)
  expect(app.logs.filter((line) => line.startsWith('checkpoint-node-sdk'))).toEqual([
    'checkpoint-node-sdk: this process uses @opentelemetry/api 1.9.1 and this package was given 1.10.0: ' +
      'two copies do not share telemetry, so none is exported here; install one version',
  ])
  expect((old.trace.getTracerProvider() as unknown as { getDelegate(): unknown }).getDelegate()).toBe(provider)
  expect(slots()).toEqual(['trace'])
})
