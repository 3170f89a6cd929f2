import type { Context } from '@deepseek-ai/cordis'
import { expect, test, vi } from 'vitest'
import type { Barrier, Decision } from '../src/index.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, summary } from './support/app.ts'
import { isOnDisk } from './support/log.ts'

/** A strategy plugin around one function. */
function strategy(name: string, decide: (barrier: Barrier) => unknown) {
  return { name: `strategy-${name}`, apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name, decide }) }
}

async function createCalls(config: object = {}) {
  const ran: string[] = []
  const app = await createApp({
    config: { turnBoundary: false, ...config },
    tools: [createTool('write', (_args, exec) => ran.push(exec.callId))],
  })
  const { agent } = await app.createAgent()
  let calls = 0
  // Something to make durable before each call, as the loop's own tool/call event.
  const call = (signal = new AbortController().signal) => {
    const callId = `call-${(calls += 1)}`
    agent.session.append('tool/call', { turn: 1, step: 1, callId, name: 'write', arguments: '{}' } as never)
    return app.ctx.tools.execute({ callId: callId as never, name: 'write', arguments: {}, agent, signal })
  }
  return { app, agent, ran, call }
}

const last = (app: Awaited<ReturnType<typeof createApp>>) => app.barriers().at(-1)

test('a strategy is asked with a frozen barrier and shown on the record', async () => {
  const { app, call } = await createCalls()
  const asked: Barrier[] = []
  await app.mount(strategy('mine', (barrier) => (asked.push(barrier), { kind: 'flush' })))
  await call()
  expect(asked).toMatchObject([
    {
      boundary: 'tool',
      guarded: true,
      sessionId: 'agent-1',
      agentId: 'agent-1',
      callId: 'call-1',
      toolName: 'write',
      pendingEvents: 1,
      delegationDepth: 0,
    },
  ])
  expect(Object.isFrozen(asked[0])).toBe(true)
  expect(last(app)).toMatchObject({ strategy: 'mine', decision: 'flush', overruled: undefined })
})

const UNGUARDED: readonly Decision[] = [{ kind: 'skip', reason: 'fast' }, { kind: 'start' }]
for (const decision of UNGUARDED) {
  test(`[D08] ${decision.kind} at a guarded boundary with events pending becomes flush, and is said once`, async () => {
    const { app, ran, call } = await createCalls()
    await app.mount(strategy('bold', () => decision))
    app.flushes.on = () => expect(ran).toHaveLength(app.flushes.count - 1)
    await call()
    await call()
    expect(app.barriers()).toMatchObject(
      Array(2).fill({ decision: 'flush', overruled: 'guarded', flushOutcome: 'durable', unguarded: false }),
    )
    expect(app.logs.filter((line) => line.includes('allowUnguarded is not set'))).toHaveLength(1)
  })

  test(`${decision.kind} at a guarded boundary is done and counted with allowUnguarded`, async () => {
    const { app, agent, ran, call } = await createCalls({ allowUnguarded: true })
    const gate = Promise.withResolvers<void>()
    app.flushes.on = () => gate.promise
    await app.mount(strategy('bold', () => decision))
    await call()
    expect(ran).toEqual(['call-1'])
    gate.resolve()
    await vi.waitFor(() => expect(app.barriers()).toHaveLength(1))
    expect(last(app)).toMatchObject({
      decision: decision.kind,
      unguarded: true,
      flushOutcome: decision.kind === 'skip' ? 'none' : 'durable',
    })
    expect(agent.status).toBe('idle')
  })
}

test('skip at a guarded boundary with nothing pending needs no permission', async () => {
  const { app, agent } = await createCalls()
  await app.mount(
    strategy('clean', (barrier) =>
      barrier.pendingEvents === 0 ? { kind: 'skip', reason: 'clean' } : { kind: 'flush' },
    ),
  )
  const call = (callId: string) =>
    app.ctx.tools.execute({
      callId: callId as never,
      name: 'write',
      arguments: {},
      agent,
      signal: new AbortController().signal,
    })
  agent.session.append('turn/start', { turn: 1 })
  await call('a')
  await call('b')
  expect(app.barriers()).toMatchObject([
    { decision: 'flush', unguarded: false },
    { decision: 'skip', reason: 'clean', flushOutcome: 'none', unguarded: false },
  ])
  expect(app.flushes.count).toBe(1)
})

const NONSENSE: readonly [string, () => unknown][] = [
  ['nothing', () => undefined],
  ['a promise', () => Promise.resolve({ kind: 'skip', reason: 'late' })],
  ['an unknown kind', () => ({ kind: 'maybe' })],
  ['a skip without a reason', () => ({ kind: 'skip' })],
  ['an endless delay', () => ({ kind: 'flush', delayMs: Infinity })],
  ['a limit of zero', () => ({ kind: 'flush', timeoutMs: 0 })],
  ['a group that is no boolean', () => ({ kind: 'flush', group: 'yes' })],
]
for (const [what, decide] of NONSENSE) {
  test(`${what} means flush, said once and marked`, async () => {
    const { app, call } = await createCalls({ allowUnguarded: true })
    await app.mount(strategy('odd', decide))
    await call()
    await call()
    expect(app.barriers()).toMatchObject(
      Array(2).fill({ decision: 'flush', overruled: 'invalid', flushOutcome: 'durable' }),
    )
    expect(app.logs.filter((line) => line.includes('answered no decision'))).toHaveLength(1)
  })
}

test('a strategy that throws means flush, said once and marked', async () => {
  const { app, call } = await createCalls({ allowUnguarded: true })
  await app.mount(
    strategy('broken', () => {
      throw new Error('no idea')
    }),
  )
  await call()
  await call()
  expect(app.barriers()).toMatchObject(
    Array(2).fill({ decision: 'flush', overruled: 'threw', flushOutcome: 'durable' }),
  )
  expect(app.logs.filter((line) => line.includes('strategy "broken" threw'))).toHaveLength(1)
})

test('a provider that is no strategy is refused in words, and the default stays', async () => {
  const { app, call } = await createCalls()
  await app.mount({
    name: 'wrong',
    apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { decide: 1 } as never),
  })
  await call()
  expect(last(app)).toMatchObject({ strategy: 'default' })
  expect(app.logs.join('\n')).toContain('checkpointStrategy must be an object with a name and a decide function')
})

test('two strategies at once: the second fails to load, the first decides', async () => {
  const { app, call } = await createCalls()
  await app.mount(strategy('first', () => ({ kind: 'flush' })))
  await expect(app.mount(strategy('second', () => ({ kind: 'flush' })))).rejects.toThrow(/checkpointStrategy/)
  await call()
  expect(last(app)).toMatchObject({ strategy: 'first' })
})

test('an open barrier finishes under the strategy that decided it; the next one asks the new provider, and then the default', async () => {
  const { app, call } = await createCalls()
  const gate = Promise.withResolvers<void>()
  const first = await app.mount(strategy('first', () => ({ kind: 'flush' })))
  app.flushes.on = () => gate.promise
  const pending = call()
  await first.dispose()
  const second = await app.mount(strategy('second', () => ({ kind: 'flush' })))
  gate.resolve()
  await pending
  await call()
  await second.dispose()
  await call()
  expect(app.barriers().map((barrier) => barrier.strategy)).toEqual(['first', 'second', 'default'])
})

test('a thousand barriers while the provider is replaced at random: none lost, none unguarded, each names who decided', async () => {
  const { app, call } = await createCalls()
  const decided: string[] = []
  const provider = (name: string) =>
    strategy(name, (barrier) => (decided.push(`${barrier.callId}:${name}`), { kind: 'flush' }))
  const traffic = { done: false }
  const swapping = (async () => {
    for (let round = 0; !traffic.done; round += 1) {
      const fiber = await app.mount(provider(`s${round % 5}`))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      await fiber.dispose()
      if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * 2))
    }
    return true
  })()
  for (let index = 0; index < 1_000; index += 8) await Promise.all(Array.from({ length: 8 }, () => call()))
  traffic.done = true
  await swapping
  const barriers = app.barriers()
  expect(barriers).toHaveLength(1_000)
  expect(
    barriers.filter(
      (barrier) => barrier.unguarded || barrier.flushOutcome !== 'durable' || barrier.outcome !== 'dispatched',
    ),
  ).toEqual([])
  const named = barriers
    .filter((barrier) => barrier.strategy !== 'default')
    .map((barrier) => `${barrier.callId}:${barrier.strategy}`)
  expect(named.toSorted()).toEqual(decided.toSorted())
  expect(new Set(barriers.map((barrier) => barrier.strategy)).size).toBeGreaterThan(3)
}, 60_000)

test('a delay waits before its flush, a limit of the strategy beats a longer one of the policy', async () => {
  const { app, call } = await createCalls({ timeoutMs: 10_000 })
  await app.mount(strategy('slow', () => ({ kind: 'flush', delayMs: 30, timeoutMs: 5 })))
  await expect(call()).resolves.toMatchObject({ isError: true })
  expect(last(app)).toMatchObject({ outcome: 'timeout', flushOutcome: 'none' })
  expect(app.flushes.count).toBe(0)
})

test('a call aborted during its delay asks for no flush', async () => {
  const { app, call } = await createCalls()
  await app.mount(strategy('slow', () => ({ kind: 'flush', delayMs: 20 })))
  const controller = new AbortController()
  const pending = call(controller.signal)
  controller.abort()
  await expect(pending).resolves.toMatchObject({ error: { info: { code: 'ABORTED_BEFORE_DISPATCH' } } })
  await new Promise((resolve) => setTimeout(resolve, 40))
  expect(app.flushes.count).toBe(0)
})

test('[D05] a rejected early write is recorded, and the next guarded barrier flushes anew', async () => {
  const ran: boolean[] = []
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-a' }]]),
    config: { turnBoundary: false },
    tools: [createTool('write', () => ran.push(isOnDisk(app.root, 'call-a')))],
  })
  await app.mount(strategy('early', (barrier) => (barrier.boundary === 'step' ? { kind: 'start' } : { kind: 'flush' })))
  app.flushes.on = () => (app.flushes.count === 1 ? Promise.reject(storageError('EIO')) : undefined)
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(summary(app.barriers()).toSorted()).toEqual(
    [
      'step:dispatched:rejected',
      'request:dispatched:durable',
      'tool:dispatched:durable',
      'step:dispatched:durable',
      'request:dispatched:durable',
    ].toSorted(),
  )
  expect(ran).toEqual([true])
})

test('observers are contained, named once, and removed by their disposer; records are frozen and JSON-safe', async () => {
  const { app, call } = await createCalls()
  const seen: unknown[] = []
  const { checkpoints } = app.ctx
  checkpoints.observe(function throwing() {
    throw new Error('observer')
  })
  checkpoints.observe(async function rejecting() {
    throw new Error('observer')
  })
  const stop = checkpoints.observe((record) => seen.push(record))
  await call()
  await call()
  stop()
  await call()
  expect(seen).toHaveLength(2)
  expect(seen.every((record) => Object.isFrozen(record))).toBe(true)
  expect(JSON.parse(JSON.stringify(seen))).toEqual(seen)
  expect(app.logs.filter((line) => /observer throwing failed/.test(line))).toHaveLength(1)
  expect(() => checkpoints.observe(undefined as never)).toThrow('observer must be a function')
})

test('a strategy whose fields throw, or that changes its answer afterwards, changes nothing that was decided', async () => {
  const { app, ran, call } = await createCalls()
  const answer: { kind: string; reason?: string } = { kind: 'flush' }
  await app.mount(strategy('sly', () => answer))
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  const pending = call()
  await vi.waitFor(() => expect(app.flushes.count).toBe(1))
  Object.assign(answer, { kind: 'skip', reason: 'changed' })
  gate.resolve()
  await pending
  expect(last(app)).toMatchObject({ decision: 'flush', unguarded: false })

  const hostile = await createCalls()
  const trap = () => {
    throw new Error('trap')
  }
  await hostile.app.mount(strategy('trap', () => Object.defineProperty({}, 'kind', { get: trap })))
  await hostile.call()
  expect(last(hostile.app)).toMatchObject({ decision: 'flush', overruled: 'threw', flushOutcome: 'durable' })
  expect([ran, hostile.ran]).toEqual([['call-1'], ['call-1']])
})

test('an abort inside decide is seen although its event has passed', async () => {
  const { app, call } = await createCalls()
  const controller = new AbortController()
  await app.mount(strategy('aborting', () => (controller.abort(), { kind: 'flush' })))
  app.flushes.on = () => new Promise(() => {})
  await expect(call(controller.signal)).resolves.toMatchObject({ error: { info: { code: 'ABORTED_BEFORE_DISPATCH' } } })
  expect(summary(app.barriers())).toEqual(['tool:aborted:none'])
  expect(app.flushes.count).toBe(0)
})

test("a call that is nobody's sibling does not wait, and does not disturb calls that gather", async () => {
  const { app, agent, call } = await createCalls()
  await app.mount(strategy('grouping', () => ({ kind: 'flush', group: true, delayMs: 1_000 })))
  const startedAt = performance.now()
  await call()
  expect(performance.now() - startedAt).toBeLessThan(500)
  expect(agent.status).toBe('idle')
})

test('a call of a session that has left the store keeps no books', async () => {
  const app = await createApp({ config: { turnBoundary: false }, tools: [createTool('write', () => 'ok')] })
  const handle = await app.createAgent()
  await handle.dispose()
  const call = {
    callId: 'late' as never,
    name: 'write',
    arguments: {},
    agent: handle.agent,
    signal: new AbortController().signal,
  }
  await expect(app.ctx.tools.execute(call)).resolves.toMatchObject({ isError: true })
  expect(app.barriers().at(-1)).toMatchObject({ outcome: 'rejected' })
  expect(app.ctx.checkpoints.state().consecutiveFailures).toBe(0)
})
