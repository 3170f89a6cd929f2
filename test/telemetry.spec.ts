import {
  context,
  metrics,
  trace,
  type Context,
  type ContextManager,
  type MeterProvider,
  type TracerProvider,
} from '@opentelemetry/api'
import { TracerProvider as SdkTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as sc from '../src/semconv.ts'
import { createTool, ScriptedModel, textChunks } from '../src/testing/harness.ts'
import { createApp, storageError, summary, type App } from './support/app.ts'
import { registerSdk } from './support/sdk.ts'

const B = sc.ATTR_BOUNDARY
const REQUEST = { provider: 'scripted', model: 'm', messages: [] }

async function createCalls(config: object = {}) {
  const app = await createApp({ config: { turnBoundary: false, ...config }, tools: [createTool('write', () => 'ok')] })
  const { agent } = await app.createAgent()
  const call = (signal = new AbortController().signal) =>
    app.ctx.tools.execute({ callId: 'call-a' as never, name: 'write', arguments: {}, agent, signal })
  /** A call that is cancelled while its barrier is pending. */
  const abortedCall = async () => {
    const controller = new AbortController()
    const pending = call(controller.signal)
    await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toHaveLength(1), { interval: 1 })
    controller.abort()
    return pending
  }
  return { app, agent, call, abortedCall }
}

/** Names of a trace as an indented tree, children in order of start. */
function tree(spans: readonly ReadableSpan[], parent?: string, depth = 0): string[] {
  return spans
    .filter((span) => (span.parentSpanContext?.spanId ?? undefined) === parent)
    .toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
    .flatMap((span) => ['  '.repeat(depth) + span.name, ...tree(spans, span.spanContext().spanId, depth + 1)])
}

test('a turn is one trace with its barriers in place and nothing left open', async () => {
  const sdk = registerSdk()
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-a' }]]),
    tools: [createTool('write', () => 'ok')],
  })
  const { agent } = await app.createAgent('one')
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers()).toHaveLength(6))
  const spans = sdk.spans()
  expect(tree(spans)).toEqual([
    'agent turn',
    ...['step', 'request', 'tool', 'step', 'request', 'turn'].map((boundary) => `  checkpoint ${boundary}`),
  ])
  const tool = spans.find((span) => span.name === 'checkpoint tool')
  expect(tool?.attributes).toEqual({
    [B]: 'tool',
    [sc.ATTR_OUTCOME]: 'dispatched',
    [sc.ATTR_FLUSH_OUTCOME]: 'durable',
    [sc.ATTR_STRATEGY]: 'default',
    [sc.ATTR_DECISION]: 'flush',
    [sc.ATTR_EVENTS]: expect.any(Number),
    [sc.ATTR_TURN]: 1,
    [sc.ATTR_STEP]: 1,
    [sc.ATTR_CONVERSATION_ID]: 'one',
    [sc.ATTR_SESSION_ID]: 'one',
    [sc.ATTR_TOOL_NAME]: 'write',
    [sc.ATTR_TOOL_CALL_ID]: 'call-a',
  })
  expect(spans.find((span) => span.name === 'checkpoint request')?.attributes[sc.ATTR_REQUEST_MODEL]).toBe('scripted-1')
  const record = app.barriers().find((barrier) => barrier.boundary === 'tool')
  expect(record).toMatchObject({ traceId: tool?.spanContext().traceId, spanId: tool?.spanContext().spanId })
})

test('what a barrier releases runs with its parent active, and a host that traces itself keeps its own parents', async () => {
  const sdk = registerSdk()
  const tracer = trace.getTracer('host')
  const child = (name: string) => tracer.startSpan(name).end()
  const model = new ScriptedModel([[{ name: 'write' }], 'bye', [{ name: 'write' }], 'bye'])
  model.onRequest = () => child('http')
  const app = await createApp({
    model,
    config: { turnBoundary: false },
    tools: [createTool('write', () => child('body'))],
  })
  const plain = await app.createAgent('plain')
  await app.say(plain.agent, 'hi')
  expect(tree(sdk.spans())).toEqual([
    'agent turn',
    ...[
      'checkpoint step',
      'checkpoint request',
      'http',
      'checkpoint tool',
      'body',
      'checkpoint step',
      'checkpoint request',
      'http',
    ].map((name) => `  ${name}`),
  ])

  // Now the host opens a span for the run and one for each tool call, outside our hook.
  app.ctx.on(
    'tools/execute',
    (_exec, next) => tracer.startActiveSpan('execute_tool write', async (span) => next().finally(() => span.end())),
    { prepend: true },
  )
  const traced = await app.createAgent('traced')
  await tracer.startActiveSpan('invoke_agent', async (span) => app.say(traced.agent, 'hi').finally(() => span.end()))
  const own = sdk.spans().filter((span) => span.spanContext().traceId !== sdk.spans()[0]?.spanContext().traceId)
  expect(tree(own)).toEqual([
    'invoke_agent',
    '  agent turn',
    ...['checkpoint step', 'checkpoint request', 'http', 'checkpoint step', 'checkpoint request', 'http'].map(
      (name) => `    ${name}`,
    ),
    '  execute_tool write',
    '    checkpoint tool',
    '    body',
  ])
})

test('[D12] a stream made inside a span keeps it as parent wherever it is read, and two sessions never swap parents', async () => {
  const sdk = registerSdk()
  const tracer = trace.getTracer('host')
  const answer = async function* (request: { sessionId?: string }) {
    for (const chunk of textChunks('hello')) {
      tracer.startSpan(`chunk ${request.sessionId}`).end()
      yield chunk
    }
  }
  const app = await createApp({ model: new ScriptedModel([answer, answer]), config: { turnBoundary: false } })
  const streams = await Promise.all(
    ['a', 'b'].map(async (id) => {
      const { agent } = await app.createAgent(id)
      return tracer.startActiveSpan(`p-${id}`, (span) => {
        const stream = app.ctx.llm.stream({ ...REQUEST, sessionId: agent.session.id })
        span.end()
        return stream[Symbol.asyncIterator]()
      })
    }),
  )
  for (let ended = 0; ended < 2;) {
    for (const stream of streams) {
      const chunk = await stream.next()
      if (chunk.done === true) ended += 1
      expect(trace.getActiveSpan()).toBeUndefined()
    }
  }
  const text = tree(sdk.spans())
  for (const id of ['a', 'b']) {
    const start = text.indexOf(`p-${id}`)
    expect(text.slice(start, start + 6)).toEqual([`p-${id}`, '  checkpoint request', ...Array(4).fill(`  chunk ${id}`)])
  }
})

test('[D13] a consumer that stops early, before or after the first pull, leaves no span open', async () => {
  const sdk = registerSdk()
  const { app, agent } = await createCalls()
  const request = { ...REQUEST, sessionId: agent.session.id }
  app.ctx.llm.stream(request)
  await app.ctx.llm.stream(request)[Symbol.asyncIterator]().return?.()
  expect(sdk.spans()).toEqual([])
  for await (const chunk of app.ctx.llm.stream(request)) {
    void chunk
    break
  }
  expect(sdk.spans().map((span) => span.name)).toEqual(['checkpoint request'])
  expect((await sdk.points(sc.METRIC_ACTIVE)).map(([, value]) => value)).toEqual([0, 0, 0, 0])
})

test('a call id or tool name that a model made endless is cut on the span', async () => {
  const sdk = registerSdk()
  const { app, agent } = await createCalls()
  const endless = 'x'.repeat(1_000_000)
  await app.ctx.tools.execute({
    callId: endless as never,
    name: endless,
    arguments: {},
    agent,
    signal: new AbortController().signal,
  })
  const [span] = sdk.spans()
  expect([span?.attributes[sc.ATTR_TOOL_CALL_ID], span?.attributes[sc.ATTR_TOOL_NAME]]).toEqual([
    'x'.repeat(256),
    'x'.repeat(256),
  ])
})

test('[D13] only rejected and timed-out barriers are errors, and no message reaches a span', async () => {
  const sdk = registerSdk()
  const { app, call, abortedCall } = await createCalls({ timeoutMs: 500 })
  app.flushes.on = () => Promise.reject(storageError('ENOSPC'))
  await call()
  const never = new Promise<void>(() => {})
  app.flushes.on = () => never
  await call()
  await abortedCall()
  expect(
    sdk
      .spans()
      .map((span) => [span.status.code, span.attributes[sc.ATTR_ERROR_TYPE], span.attributes[sc.ATTR_OUTCOME]]),
  ).toEqual([
    [2, 'ENOSPC', 'rejected'],
    [2, 'timeout', 'timeout'],
    [0, undefined, 'aborted'],
  ])
  expect(
    JSON.stringify(sdk.spans().map(({ attributes, status, events }) => ({ attributes, status, events }))),
  ).not.toContain('private')
})

test('each outcome is counted once, under the contract names, and no id is on any metric', async () => {
  const sdk = registerSdk()
  const { app, agent, call, abortedCall } = await createCalls({ timeoutMs: 500 })
  await call()
  app.flushes.on = () => Promise.reject(storageError('ENOSPC'))
  await call()
  const never = new Promise<void>(() => {})
  app.flushes.on = () => never
  await call()
  await abortedCall()
  app.flushes.on = undefined
  for await (const chunk of app.ctx.llm.stream({ ...REQUEST, sessionId: agent.session.id })) void chunk

  const key = { [B]: 'tool', [sc.ATTR_STRATEGY]: 'default' }
  expect(await sdk.points(sc.METRIC_BARRIER_DURATION)).toEqual([
    [{ ...key, [sc.ATTR_OUTCOME]: 'dispatched' }, 1],
    [{ ...key, [sc.ATTR_OUTCOME]: 'rejected' }, 1],
    [{ ...key, [sc.ATTR_OUTCOME]: 'timeout' }, 1],
    [{ ...key, [sc.ATTR_OUTCOME]: 'aborted' }, 1],
    [{ ...key, [B]: 'request', [sc.ATTR_OUTCOME]: 'dispatched' }, 1],
  ])
  expect(await sdk.points(sc.METRIC_FLUSH_DURATION)).toEqual([
    [{ [B]: 'tool', [sc.ATTR_FLUSH_OUTCOME]: 'durable' }, 1],
    [{ [B]: 'tool', [sc.ATTR_FLUSH_OUTCOME]: 'rejected' }, 1],
    [{ [B]: 'tool', [sc.ATTR_FLUSH_OUTCOME]: 'pending' }, 2],
    [{ [B]: 'request', [sc.ATTR_FLUSH_OUTCOME]: 'durable' }, 1],
  ])
  expect((await sdk.points(sc.METRIC_REJECTIONS)).filter(([, value]) => value > 0)).toEqual([
    [{ [B]: 'tool', [sc.ATTR_ERROR_TYPE]: 'ENOSPC' }, 1],
    [{ [B]: 'tool', [sc.ATTR_ERROR_TYPE]: 'timeout' }, 1],
  ])
  expect(await sdk.points(sc.METRIC_ABORTED)).toEqual([[{}, 1]])
  expect((await sdk.names()).toSorted()).toEqual(Object.keys(sc.INSTRUMENTS).toSorted())
  for (const name of await sdk.names()) {
    const allowed: readonly string[] = sc.INSTRUMENTS[name as keyof typeof sc.INSTRUMENTS].attributes
    for (const [attributes] of await sdk.points(name))
      expect(allowed).toEqual(expect.arrayContaining(Object.keys(attributes)))
  }
})

test('[D07] a late settle adds no sample', async () => {
  const sdk = registerSdk()
  const { app, agent, abortedCall } = await createCalls()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  await abortedCall()
  const before = [await sdk.points(sc.METRIC_BARRIER_DURATION), await sdk.points(sc.METRIC_FLUSH_DURATION)]
  gate.resolve()
  // The store ends the flushes of a session in order.
  await app.ctx.sessions.flush(agent.session)
  await new Promise((resolve) => setImmediate(resolve))
  expect([await sdk.points(sc.METRIC_BARRIER_DURATION), await sdk.points(sc.METRIC_FLUSH_DURATION)]).toEqual(before)
  expect(sdk.spans()).toHaveLength(1)
})

test('counters and gauges exist at zero from the first collection, for the mounted strategy too', async () => {
  const sdk = registerSdk()
  const { app } = await createCalls()
  await app.mount({
    name: 's',
    apply: (ctx: typeof app.ctx) =>
      void ctx.provide('checkpointStrategy', { name: 'mine', decide: () => ({ kind: 'flush' }) }),
  })
  expect(await sdk.points(sc.METRIC_REJECTIONS)).toHaveLength(sc.BOUNDARIES.length * sc.ERROR_TYPES.length)
  expect(await sdk.points(sc.METRIC_ABORTED)).toEqual([[{}, 0]])
  expect(await sdk.points(sc.METRIC_RECOVERED)).toEqual(
    sc.RECOVERIES.map((recovery) => [{ [sc.ATTR_RECOVERY]: recovery }, 0]),
  )
  const unguarded = await sdk.points(sc.METRIC_UNGUARDED)
  expect(unguarded.map(([attributes]) => attributes[sc.ATTR_STRATEGY])).toEqual(['default', 'default', 'mine', 'mine'])
  expect((await sdk.points(sc.METRIC_ACTIVE)).map(([, value]) => value)).toEqual([0, 0, 0, 0])
  expect(await sdk.points(sc.METRIC_OLDEST_AGE)).toEqual([[{}, 0]])
  expect(await sdk.points(sc.METRIC_UNFLUSHED_AGE)).toEqual([[{}, 0]])
  expect(await sdk.points(sc.METRIC_CONSECUTIVE_FAILURES)).toEqual([[{}, 0]])
  expect(await sdk.points(sc.METRIC_POLICY_ACTIVE)).toEqual([[{}, 1]])
})

test('[D07] a hang shows while it lasts: active and oldest age', async () => {
  const sdk = registerSdk()
  const { app, call } = await createCalls()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  const pending = call()
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(await sdk.points(sc.METRIC_ACTIVE)).toContainEqual([{ [B]: 'tool' }, 1])
  expect((await sdk.points(sc.METRIC_OLDEST_AGE))[0]?.[1]).toBeGreaterThan(0.025)
  gate.resolve()
  await pending
  expect(await sdk.points(sc.METRIC_ACTIVE)).toContainEqual([{ [B]: 'tool' }, 0])
})

test('after disposal every gauge reports 0, and a reload adds no second callback', async () => {
  const sdk = registerSdk()
  const { app } = await createCalls()
  for (let round = 0; round < 3; round += 1) await app.plugins.at(-1)?.restart()
  expect(await sdk.points(sc.METRIC_POLICY_ACTIVE)).toEqual([[{}, 1]])
  await app.plugins.at(-1)?.dispose()
  expect(await sdk.points(sc.METRIC_POLICY_ACTIVE)).toEqual([[{}, 0]])
  expect((await sdk.points(sc.METRIC_ACTIVE)).map(([, value]) => value)).toEqual([0, 0, 0, 0])
})

test('[D14] five barriers are five samples and five spans when the SDK comes before the policy, after it, and again later', async () => {
  const five = async (app: Awaited<ReturnType<typeof createCalls>>, sdk: ReturnType<typeof registerSdk>) => {
    for (let index = 0; index < 5; index += 1) await app.call()
    expect(await sdk.points(sc.METRIC_BARRIER_DURATION)).toMatchObject([[{}, 5]])
    expect(sdk.spans()).toHaveLength(5)
  }
  const before = registerSdk()
  const first = await createCalls()
  await five(first, before)
  await before.shutdown()
  const after = await createCalls()
  const second = registerSdk()
  await five(after, second)
  await second.shutdown()
  const third = registerSdk()
  await five(after, third)
})

test('an SDK that comes later has its zeros within a second, without a barrier', async () => {
  await createCalls()
  const sdk = registerSdk()
  await vi.waitFor(async () => expect(await sdk.points(sc.METRIC_ABORTED)).toEqual([[{}, 0]]), { timeout: 3_000 })
})

test('[D17] second-based buckets keep 0.8 ms, 4 ms, 30 ms, 0.7 s and 12 s apart, and a Config field changes them', async () => {
  const sdk = registerSdk()
  const app = await createApp({
    config: { durationBucketsSeconds: [0.5, 1] },
    tools: [createTool('write', () => 'ok')],
  })
  const { agent } = await app.createAgent()
  await app.ctx.tools.execute({
    callId: 'c' as never,
    name: 'write',
    arguments: {},
    agent,
    signal: new AbortController().signal,
  })
  expect((await sdk.histogram(sc.METRIC_BARRIER_DURATION))[0]?.value.buckets.boundaries).toEqual([0.5, 1])
  const index = (seconds: number) => sc.DURATION_BUCKETS_SECONDS.findIndex((bound) => seconds <= bound)
  expect(new Set([0.0008, 0.004, 0.03, 0.7, 12].map(index)).size).toBe(5)
})

test('strategy names beyond the limit fold into _OTHER', async () => {
  const sdk = registerSdk()
  const { app, call } = await createCalls()
  for (let index = 0; index < 40; index += 1) {
    const strategy = { name: `s${index}`, decide: () => ({ kind: 'flush' as const }) }
    const fiber = await app.mount({
      name: 'many',
      apply: (ctx: App['ctx']) => void ctx.provide('checkpointStrategy', strategy),
    })
    await call()
    await fiber.dispose()
  }
  const strategies = (await sdk.points(sc.METRIC_BARRIER_DURATION)).map(([attributes]) => attributes[sc.ATTR_STRATEGY])
  // The default is one of the names.
  expect(strategies).toHaveLength(sc.MAX_STRATEGY_NAMES - 1 + 1)
  expect(strategies).toContain(sc.OTHER)
})

test('[D10] an SDK registered through another copy of the API is named once, and barriers still protect', async () => {
  const symbol = Symbol.for('opentelemetry.js.api.1')
  const globals = globalThis as Record<symbol, unknown>
  const own = globals[symbol]
  // What a copy of 1.9 leaves behind: ours, of 1.10, does not accept it.
  globals[symbol] = { version: '1.9.1', metrics: {}, trace: {} }
  onTestFinished(() => void (globals[symbol] = own))
  const { app, call } = await createCalls()
  await vi.waitFor(() => expect(app.logs.join('\n')).toContain('registered through @opentelemetry/api 1.9.1'))
  await call()
  expect(summary(app.barriers())).toEqual(['tool:dispatched:durable'])
  expect(app.logs.filter((line) => line.includes('registered through'))).toHaveLength(1)
})

test('one copy of the API gives no such warning, with an SDK and without', async () => {
  const without = await createCalls()
  registerSdk()
  const { app, call } = await createCalls()
  await call()
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  for (const { logs } of [without.app, app]) expect(logs.join('\n')).not.toContain('registered through')
})

test('a strategy that throws is counted as a fault', async () => {
  const sdk = registerSdk()
  const { app, call } = await createCalls()
  await app.mount({
    name: 's',
    apply: (ctx: App['ctx']) =>
      void ctx.provide('checkpointStrategy', {
        name: 'broken',
        decide() {
          throw new Error('no')
        },
      }),
  })
  await call()
  expect(await sdk.points(sc.METRIC_STRATEGY_FAULTS)).toContainEqual([{ [B]: 'tool', [sc.ATTR_STRATEGY]: 'broken' }, 1])
})

const BROKEN: readonly [string, () => void][] = [
  [
    'tracer',
    () =>
      trace.setGlobalTracerProvider({
        getTracer: () => ({ startSpan: fail, startActiveSpan: fail }),
      } as unknown as TracerProvider),
  ],
  ['tracer provider', () => trace.setGlobalTracerProvider({ getTracer: fail } as unknown as TracerProvider)],
  [
    'span',
    () =>
      trace.setGlobalTracerProvider({
        getTracer: () => ({ startSpan: () => new Proxy({}, { get: () => fail }) }),
      } as unknown as TracerProvider),
  ],
  ['meter provider', () => metrics.setGlobalMeterProvider({ getMeter: fail } as unknown as MeterProvider)],
  [
    'instrument',
    () => {
      const broken = { add: fail, record: fail, addCallback: fail }
      const meter = new Proxy({}, { get: () => () => broken })
      metrics.setGlobalMeterProvider({ getMeter: () => meter } as unknown as MeterProvider)
    },
  ],
  ['context manager that calls twice', () => context.setGlobalContextManager(manager((fn) => (fn(), fn())))],
  ['context manager that never calls', () => context.setGlobalContextManager(manager(() => undefined))],
  [
    'context manager that throws afterwards',
    () =>
      context.setGlobalContextManager(
        manager((fn) => {
          fn()
          fail()
        }),
      ),
  ],
  [
    'context manager',
    () =>
      context.setGlobalContextManager({
        active: fail,
        with: fail,
        bind: fail,
        enable: () => undefined as never,
        disable: () => undefined as never,
      }),
  ],
]
/** A context manager that is right except in how it runs a function. */
function manager(run: (fn: () => unknown) => unknown): ContextManager {
  const other = { getValue: () => undefined, setValue: () => other, deleteValue: () => other } as Context
  const broken = {
    active: () => other,
    with: (_context: Context, fn: () => unknown) => run(fn),
    bind: fail,
    enable: () => broken,
    disable: () => broken,
  }
  return broken as unknown as ContextManager
}
function fail(): never {
  throw new Error('telemetry is broken')
}

for (const [what, breakIt] of BROKEN) {
  test(`[D16] a broken ${what} changes nothing for the agent`, async () => {
    const run = async (broken: boolean) => {
      if (broken) breakIt()
      // A tracer whose spans are valid, so that there is a context to run in.
      if (broken && what.startsWith('context manager')) trace.setGlobalTracerProvider(new SdkTracerProvider())
      const app = await createApp({
        model: new ScriptedModel([[{ name: 'write' }]]),
        config: { turnBoundary: false },
        tools: [createTool('write', () => 'ok')],
      })
      app.flushes.on = () => (app.flushes.count === 5 ? Promise.reject(storageError('EIO')) : undefined)
      const { agent } = await app.createAgent()
      await app.say(agent, 'hi')
      for (const api of [context, trace, metrics]) api.disable()
      return {
        barriers: summary(app.barriers()),
        types: agent.session.events.map((event) => event.type),
        requests: app.model.requests.length,
      }
    }
    const whole = await run(false)
    const broken = await run(true)
    expect(broken).toEqual(whole)
    expect(whole.barriers).toHaveLength(5)
  })
}

test('the scope carries the name and the version of the package', async () => {
  const { default: manifest } = await import('../package.json', { with: { type: 'json' } })
  expect([sc.SCOPE_NAME, sc.SCOPE_VERSION]).toEqual([manifest.name, manifest.version])
  expect(policy.name).toBe('session-checkpoint-policy')
})
