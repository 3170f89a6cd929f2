import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError } from './support/app.ts'
import { contractKey, createFake, freePort, OPENMETRICS, scrape } from './support/scrape.ts'

const exporter = new InMemorySpanExporter()

beforeEach(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
})
afterEach(() => {
  exporter.reset()
  trace.disable()
  context.disable()
})

test('exemplars lead to the spans of the barriers, under OpenMetrics alone', async () => {
  const port = await freePort()
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-a' }]]),
    tools: [createTool('write', () => 'ok')],
    plugins: [[policy], [prometheus, { port }]],
  })
  const { agent } = await app.createAgent()
  app.flushes.on = () => {
    if (app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')) throw storageError('EIO')
  }
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers().at(-1)?.boundary).toBe('turn'))

  const spans = new Map(exporter.getFinishedSpans().map((span) => [span.spanContext().spanId, span]))
  const samples = await scrape(port, OPENMETRICS)
  const boundaries = new Set<string>()
  for (const [series, exemplar] of samples.exemplars) {
    const span = spans.get(exemplar[sc.EXEMPLAR_SPAN_ID] ?? '')
    expect(span?.spanContext().traceId).toBe(exemplar[sc.EXEMPLAR_TRACE_ID])
    const boundary = String(span?.attributes[sc.ATTR_BOUNDARY])
    expect(series).toContain(`="${boundary}"`)
    boundaries.add(boundary)
  }
  expect(boundaries).toEqual(new Set(sc.BOUNDARIES))

  const rejection = contractKey(sc.METRIC_REJECTIONS, { [sc.ATTR_BOUNDARY]: 'tool', [sc.ATTR_ERROR_TYPE]: 'EIO' })
  const rejected = spans.get(samples.exemplars.get(rejection)?.[sc.EXEMPLAR_SPAN_ID] ?? '')
  expect(rejected?.attributes).toMatchObject({ [sc.ATTR_BOUNDARY]: 'tool', [sc.ATTR_OUTCOME]: 'rejected' })

  const text = await scrape(port)
  expect(text.exemplars.size).toBe(0)
  expect(text.series.get(rejection)).toBe(1)
})

test('an exemplar stands in the bucket of its value, above the last bound too', async () => {
  const fake = await createFake()
  const ids = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
  fake.announce({ durationMs: 3, ...ids })
  fake.announce({ durationMs: 90_000, ...ids, spanId: 'c'.repeat(16) })
  const { exemplars } = await scrape(fake.port, OPENMETRICS)
  const attributes = { [sc.ATTR_BOUNDARY]: 'tool', [sc.ATTR_OUTCOME]: 'dispatched', [sc.ATTR_STRATEGY]: 'default' }
  const at = (le: string) => exemplars.get(contractKey(sc.METRIC_BARRIER_DURATION, { ...attributes, le }, '_bucket'))
  expect(at('0.005')).toEqual({ [sc.EXEMPLAR_TRACE_ID]: ids.traceId, [sc.EXEMPLAR_SPAN_ID]: ids.spanId })
  expect(at('+Inf')).toMatchObject({ [sc.EXEMPLAR_SPAN_ID]: 'c'.repeat(16) })
})

test('without a tracer there are no exemplars, and the same counts', async () => {
  const fake = await createFake()
  fake.announce({})
  const samples = await scrape(fake.port, OPENMETRICS)
  expect(samples.exemplars.size).toBe(0)
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({ 'tool,dispatched,default': 1 })
})
