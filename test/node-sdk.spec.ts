/** The SDK plugin in an app: what it exports, and what is left when it goes. */
import type { Context } from '@deepseek-ai/cordis'
import { trace } from '@opentelemetry/api'
import { afterEach, expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import * as sc from '../src/semconv.ts'
import { createApp } from './support/app.ts'
import { createOtlpReceiver } from './support/otlp.ts'
import { BARRIERS, barriersIn, configOf, forgetProcess, slots, turn } from './support/sdk-plugin.ts'

/** Awaited in the middle of each start. */
const start = vi.hoisted(() => ({ held: undefined as Promise<void> | undefined }))
vi.mock('../src/node-sdk/exporters.ts', async (original) => {
  const exporters = await original<typeof import('../src/node-sdk/exporters.ts')>()
  return {
    ...exporters,
    async createSpanExporter(...args: Parameters<typeof exporters.createSpanExporter>) {
      await start.held
      return exporters.createSpanExporter(...args)
    },
  }
})

afterEach(() => {
  vi.unstubAllEnvs()
  start.held = undefined
  forgetProcess()
})

test('[D14] exports spans and metrics when it is mounted before the policy', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp({
    plugins: [
      [nodeSdk, configOf(receiver)],
      [policy, { turnBoundary: true }],
    ],
  })
  await turn(app)
  await app.plugins[1]?.dispose()
  expect(barriersIn(receiver)).toEqual(BARRIERS)
  expect(receiver.total(sc.METRIC_BARRIER_DURATION)).toBe(3)
  expect(slots()).toEqual([])
})

test('[D14] exports spans and metrics when it is mounted after the policy', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  await turn(app)
  await sdk.dispose()
  expect(barriersIn(receiver)).toEqual(BARRIERS)
  expect(receiver.total(sc.METRIC_BARRIER_DURATION)).toBe(3)
})

test('[D14] a reload under a running policy loses no barrier and counts none twice', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const spans: number[] = []
  const counts: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const sdk = await app.mount(nodeSdk, configOf(receiver))
    await turn(app)
    await sdk.dispose()
    spans.push(barriersIn(receiver).length)
    counts.push(receiver.total(sc.METRIC_BARRIER_DURATION))
  }
  expect(spans).toEqual([3, 6, 9, 12, 15])
  // Each load begins at zero, which a backend takes for a restart.
  expect(counts).toEqual([3, 3, 3, 3, 3])
  expect(slots()).toEqual([])
  expect(app.logs.filter((line) => line.includes('already registered'))).toEqual([])
})

test('a remount that does not wait for the unload exports as well', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const first = await app.mount(nodeSdk, configOf(receiver))
  const unload = first.dispose()
  const second = await app.mount(nodeSdk, configOf(receiver))
  await unload
  await turn(app)
  await second.dispose()
  expect(receiver.total(sc.METRIC_BARRIER_DURATION)).toBe(3)
  expect(app.logs.filter((line) => line.includes('already registered'))).toEqual([])
})

test('spans that other plugins close when everything is unloaded together are exported', async () => {
  const receiver = await createOtlpReceiver()
  const sibling = {
    name: 'sibling',
    apply(ctx: Context) {
      const span = trace.getTracer('sibling').startSpan('closed late')
      ctx.effect(() => async () => {
        // As many promises later as a loader's groups may need to pass the unload on.
        for (let depth = 0; depth < 50; depth += 1) await Promise.resolve()
        span.end()
      })
    },
  }
  const app = await createApp({ plugins: [[nodeSdk, configOf(receiver)], [sibling], [policy]] })
  await turn(app)
  await app.dispose()
  expect(receiver.spans.map(({ name }) => name)).toContain('closed late')
})

test('exports only the signals that were asked for', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver, { signals: ['traces'] }))
  expect(slots()).not.toContain('metrics')
  await turn(app)
  await sdk.dispose()
  expect([...new Set(receiver.requests.map(({ url }) => url))]).toEqual(['/v1/traces'])
})

test('never takes the global logger provider', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  await app.mount(nodeSdk, configOf(receiver))
  expect(slots()).toEqual(['context', 'diag', 'metrics', 'propagation', 'trace'])
  expect(process.env['OTEL_LOGS_EXPORTER']).toBeUndefined()
})

test('OTEL_SDK_DISABLED keeps it out', async () => {
  vi.stubEnv('OTEL_SDK_DISABLED', 'true')
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  expect(slots()).toEqual([])
  await turn(app)
  await sdk.dispose()
  expect(receiver.requests).toEqual([])
})

test('reads endpoint, headers and names from the OTEL variables', async () => {
  const receiver = await createOtlpReceiver()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', receiver.endpoint)
  vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', 'http/json')
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-key=from-env')
  vi.stubEnv('OTEL_SERVICE_NAME', 'from-env')
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test')
  const app = await createApp()
  const sdk = await app.mount(nodeSdk)
  await turn(app)
  await sdk.dispose()
  expect(receiver.requests[0]?.headers['x-key']).toBe('from-env')
  expect(receiver.resources[0]).toMatchObject({ 'service.name': 'from-env', 'deployment.environment.name': 'test' })
})

test('configuration overrides the OTEL variables', async () => {
  const receiver = await createOtlpReceiver()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1')
  vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc')
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-key=from-env')
  vi.stubEnv('OTEL_SERVICE_NAME', 'from-env')
  const app = await createApp()
  const sdk = await app.mount(
    nodeSdk,
    configOf(receiver, { headers: { 'X-Key': 'from-config' }, serviceName: 'from-config' }),
  )
  await turn(app)
  await sdk.dispose()
  expect(receiver.requests[0]?.headers['x-key']).toBe('from-config')
  expect(receiver.resources[0]).toMatchObject({ 'service.name': 'from-config' })
})

test('the resource says dsh and an instance, and nothing about the process', async () => {
  // What the default detectors would ship, asked for or not.
  vi.stubEnv('OTEL_NODE_RESOURCE_DETECTORS', 'all')
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  await turn(app)
  await sdk.dispose()
  expect(Object.keys(receiver.resources[0] ?? {}).sort()).toEqual([
    'service.instance.id',
    'service.name',
    'telemetry.sdk.language',
    'telemetry.sdk.name',
    'telemetry.sdk.version',
  ])
  expect(receiver.resources[0]).toMatchObject({ 'service.name': 'dsh' })
  expect(app.logs.join('\n')).toContain('OTEL_NODE_RESOURCE_DETECTORS=all is not used')
})

test('[D11] leaves nothing behind when it is unloaded while it starts, twenty times over', async () => {
  const receiver = await createOtlpReceiver()
  const app = await createApp()
  for (let round = 0; round < 20; round += 1) {
    const held = Promise.withResolvers<void>()
    start.held = held.promise
    const fiber = app.ctx.plugin({ ...nodeSdk } as never, configOf(receiver) as never) as unknown as {
      dispose(): Promise<void>
    }
    await vi.waitFor(() => expect(slots()).toEqual(['diag']))
    const unload = fiber.dispose()
    held.resolve()
    await unload
    expect(slots()).toEqual([])
  }
  start.held = undefined
  const sdk = await app.mount(nodeSdk, configOf(receiver))
  await turn(app)
  await sdk.dispose()
  expect(receiver.total(sc.METRIC_BARRIER_DURATION)).toBe(3)
  expect(slots()).toEqual([])
})

test('a failed start is a line in the log and not the end of the boot', async () => {
  const receiver = await createOtlpReceiver()
  start.held = Promise.reject(new Error('no module for hunter2hunter2'))
  const app = await createApp({
    plugins: [[policy], [nodeSdk, configOf(receiver, { headers: { authorization: 'Bearer hunter2hunter2' } })]],
  })
  await turn(app)
  expect(app.barriers().map(({ outcome }) => outcome)).toContain('dispatched')
  expect(app.logs.filter((line) => line.includes('did not start'))).toEqual([
    'checkpoint-node-sdk did not start, the host goes on without it: no module for ***',
  ])
  expect(slots()).toEqual([])
})
