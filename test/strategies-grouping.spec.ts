import { setImmediate as immediate } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import { expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import type { CheckpointStrategy } from '../src/index.ts'
import coalesced from '../src/strategies/coalesced.ts'
import { createTool, ScriptedModel, type HarnessOptions, type ScriptedCall } from '../src/testing/harness.ts'
import { createApp, type App } from './support/app.ts'
import { isOnDisk } from './support/log.ts'

/** Far longer than any test may take: whoever waits for it has waited in vain. */
const LONG_MS = 1_000
const IN_VAIN_MS = 500

/** An app under `coalesced`; `read` is parallel, `write` exclusive, and every body must find its call on disk. */
async function createGrouping(
  calls: readonly ScriptedCall[],
  options: Partial<HarnessOptions> & { readonly delayMs?: number } = {},
) {
  const ran: string[] = []
  const body = (_args: unknown, exec: { readonly callId: string }): void => {
    if (!isOnDisk(app.root, exec.callId)) throw new Error(`${exec.callId} is not on disk`)
    ran.push(exec.callId)
  }
  const app = await createApp({
    model: new ScriptedModel([calls]),
    tools: [createTool('read', body, { parallel: true }), createTool('write', body)],
    plugins: [[policy], [coalesced, { groupDelayMs: options.delayMs ?? LONG_MS }]],
    ...options,
  })
  return { app, ran }
}

const tools = (app: App) => app.barriers().filter(({ boundary }) => boundary === 'tool')
const flushesOf = (app: App) =>
  tools(app).filter(({ flushOutcome, sharedFlush }) => flushOutcome !== 'none' && !sharedFlush).length
const longestWait = (app: App) => Math.max(...tools(app).map(({ durationMs }) => durationMs))
const read = (id: string): ScriptedCall => ({ name: 'read', id })
const write = (id: string): ScriptedCall => ({ name: 'write', id })

/** Let each call pass its policy in turns of the event loop, and deny those whose id says so. */
function guardSlowly(app: App): void {
  app.ctx.on('tools/pre-execute', async (exec, next) => {
    for (let turn = 0; turn < 3; turn += 1) await immediate()
    return exec.callId.startsWith('denied') ? { kind: 'deny', reason: 'not today' } : next()
  })
}

function strategyOf(decide: CheckpointStrategy['decide']): object {
  return { name: 'own', apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name: 'own', decide }) }
}

async function run(app: App): Promise<void> {
  const { agent } = await app.createAgent()
  await app.say(agent, 'go')
}

test('parallel calls share one flush, begun when the last of them is at its barrier', async () => {
  const { app, ran } = await createGrouping([read('a'), read('b'), read('c')])
  await run(app)
  expect(ran).toEqual(['a', 'b', 'c'])
  expect(tools(app).map(({ sharedFlush, flushOutcome }) => [sharedFlush, flushOutcome])).toEqual([
    [false, 'durable'],
    [true, 'durable'],
    [true, 'durable'],
  ])
})

test('without the strategy each of them flushes for itself', async () => {
  const { app } = await createGrouping([read('a'), read('b'), read('c')], { plugins: [[policy]] })
  await run(app)
  expect(flushesOf(app)).toBe(3)
})

for (const order of ['denied first', 'first denied', 'in denied the middle', 'two denied denied calls']) {
  const calls = order.split(' ').map((word, index) => read(word === 'denied' ? `denied-${index}` : `${word}-${index}`))
  test(`nobody waits for a call that policy denies: ${order}`, async () => {
    const { app, ran } = await createGrouping(calls)
    guardSlowly(app)
    await run(app)
    expect(ran).toHaveLength(calls.filter(({ id }) => !id?.startsWith('denied')).length)
    expect(flushesOf(app)).toBe(1)
    expect(longestWait(app)).toBeLessThan(IN_VAIN_MS)
  })
}

test('nobody waits for a call that a guard denies', async () => {
  const { app, ran } = await createGrouping([read('a'), read('b')])
  app.ctx.tools.guard((exec) => (exec.callId === 'b' ? 'not this one' : undefined))
  await run(app)
  expect(ran).toEqual(['a'])
  expect(longestWait(app)).toBeLessThan(IN_VAIN_MS)
})

test('nobody waits for a call that a person is asked about', async () => {
  const asked = Promise.withResolvers<'allowed-once'>()
  const { app, ran } = await createGrouping([read('a'), read('ask'), read('c')])
  app.ctx.provide('approval', { request: () => asked.promise } as never)
  app.ctx.on('tools/pre-execute', (exec, next) => (exec.callId === 'ask' ? Promise.resolve({ kind: 'ask' }) : next()))
  const running = run(app)
  await vi.waitFor(() => expect(ran).toEqual(['a']), { timeout: IN_VAIN_MS })
  asked.resolve('allowed-once')
  await running
  expect(ran).toEqual(['a', 'ask', 'c'])
  expect(flushesOf(app)).toBe(2)
})

test('calls that come after the delay gather anew', async () => {
  const slow = Promise.withResolvers<void>()
  const { app, ran } = await createGrouping([read('a'), read('b'), read('slow'), read('d')], { delayMs: 20 })
  app.ctx.on('tools/pre-execute', async (exec, next) => {
    if (exec.callId === 'slow') await slow.promise
    return next()
  })
  const running = run(app)
  await vi.waitFor(() => expect(ran).toEqual(['a', 'b']))
  slow.resolve()
  await running
  expect(ran).toEqual(['a', 'b', 'slow', 'd'])
  expect(flushesOf(app)).toBe(2)
})

test('an exclusive call waits for no sibling', async () => {
  const { app, ran } = await createGrouping([read('a'), write('x'), read('b'), read('c')])
  await run(app)
  expect(ran).toEqual(['a', 'x', 'b', 'c'])
  expect(flushesOf(app)).toBe(3)
  expect(longestWait(app)).toBeLessThan(IN_VAIN_MS)
})

test('no call waits for more siblings than the loop runs at once', async () => {
  const calls = ['a', 'b', 'c', 'd', 'e'].map(read)
  const { app, ran } = await createGrouping(calls, { maxParallelToolCalls: 2 })
  await run(app)
  expect(ran).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(longestWait(app)).toBeLessThan(IN_VAIN_MS)
})

test("tools of the agent's own are grouped like any other", async () => {
  const { app } = await createGrouping([{ name: 'own' }, { name: 'own' }, { name: 'own' }])
  const { agent } = await app.createAgent()
  agent.ctx.tools.register(createTool('own', () => 'ok', { parallel: true }))
  await app.say(agent, 'go')
  expect(tools(app)).toHaveLength(3)
  expect(flushesOf(app)).toBe(1)
})

test('a call that is cancelled while it gathers never runs', async () => {
  const held = Promise.withResolvers<void>()
  const { app, ran } = await createGrouping([read('a'), read('held')])
  app.ctx.on('tools/pre-execute', async (exec, next) => {
    if (exec.callId === 'held') await held.promise
    return next()
  })
  const { agent } = await app.createAgent()
  const saying = app.say(agent, 'go')
  await vi.waitFor(() => expect(app.ctx.checkpoints.open().map(({ callId }) => callId)).toEqual(['a']))
  agent.cancel({ kind: 'user' })
  held.resolve()
  await saying
  expect(ran).toEqual([])
  expect(tools(app).map(({ callId, outcome, flushOutcome }) => [callId, outcome, flushOutcome])).toEqual([
    ['a', 'aborted', 'none'],
  ])
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
})

test('a strategy that is swapped while calls gather leaves none behind', async () => {
  const held = Promise.withResolvers<void>()
  const { app, ran } = await createGrouping([read('a'), read('held'), read('c')])
  app.ctx.on('tools/pre-execute', async (exec, next) => {
    if (exec.callId === 'held') await held.promise
    return next()
  })
  const running = run(app)
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toMatchObject([{ boundary: 'tool' }]))
  await app.plugins[2]?.dispose()
  held.resolve()
  await running
  expect([...ran].sort()).toEqual(['a', 'c', 'held'])
  expect(
    tools(app)
      .map(({ callId, strategy }) => `${callId} ${strategy}`)
      .sort(),
  ).toEqual(['a coalesced', 'c default', 'held default'])
  expect(longestWait(app)).toBeLessThan(IN_VAIN_MS)
})

test('a call that times out while it gathers is rejected, and its siblings go on without it', async () => {
  const held = Promise.withResolvers<void>()
  const impatient = strategyOf(({ callId }) => ({
    kind: 'flush',
    group: true,
    delayMs: LONG_MS,
    timeoutMs: callId === 'a' ? 20 : LONG_MS,
  }))
  const { app, ran } = await createGrouping([read('a'), read('held'), read('c')], { plugins: [[policy], [impatient]] })
  app.ctx.on('tools/pre-execute', async (exec, next) => {
    if (exec.callId === 'held') await held.promise
    return next()
  })
  const running = run(app)
  await vi.waitFor(() => expect(tools(app).map(({ outcome }) => outcome)).toEqual(['timeout']))
  held.resolve()
  await running
  expect(ran).toEqual(['held', 'c'])
  expect(
    tools(app).map(({ callId, outcome, flushOutcome, sharedFlush }) => [callId, outcome, flushOutcome, sharedFlush]),
  ).toEqual([
    ['a', 'timeout', 'none', false],
    ['held', 'dispatched', 'durable', false],
    ['c', 'dispatched', 'durable', true],
  ])
})

test('a grouped decision waits for nobody where there are no siblings', async () => {
  const grouping = strategyOf(() => ({ kind: 'flush', group: true, delayMs: LONG_MS }))
  const { app } = await createGrouping([write('x')], { plugins: [[policy], [grouping]] })
  await run(app)
  expect(app.barriers().filter(({ durationMs }) => durationMs >= IN_VAIN_MS)).toEqual([])
})

test('a delay without a group is a wait of its own', async () => {
  const delaying = strategyOf(({ boundary }) => ({ kind: 'flush', delayMs: boundary === 'step' ? 30 : 0 }))
  const { app } = await createGrouping([write('x')], { plugins: [[policy], [delaying]] })
  await run(app)
  const steps = app.barriers().filter(({ boundary }) => boundary === 'step')
  expect(steps).toHaveLength(2)
  // A timer may fire a millisecond early.
  for (const { durationMs, flushMs = 0 } of steps) expect(durationMs - flushMs).toBeGreaterThan(28)
})
