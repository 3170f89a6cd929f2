import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as inspector from '../src/inspector.ts'
import { BOUNDS } from '../src/inspector/recorder.ts'
import { Ring, Slowest } from '../src/inspector/lists.ts'
import coalesced from '../src/strategies/coalesced.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, tempFolder } from './support/app.ts'
import { createFake, stateOf } from './support/inspector.ts'
import { ask, freePort } from './support/scrape.ts'

const CRASH_CHILD = fileURLToPath(new URL('./support/crash-child.ts', import.meta.url))

/** A real app whose model makes one call of `write`. */
async function createInspected(
  options: Parameters<typeof createApp>[0] = {},
  extra: readonly (readonly [object, unknown?])[] = [],
) {
  const port = await freePort()
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-a' }]]),
    tools: [createTool('write', () => 'written')],
    plugins: [[policy, { turnBoundary: false }], ...extra, [inspector, { port }]],
    ...options,
  })
  return { app, port, state: () => stateOf(port) }
}

test('after a turn it shows the same barriers as the records, newest first, and counts each once', async () => {
  const { app, state } = await createInspected()
  const { agent } = await app.createAgent('my-session')
  await app.say(agent, 'hi')
  const { last, slowest, settled, boundaries, gauges, strategies, failures, open } = await state()
  expect(last).toEqual(app.barriers().toReversed())
  expect(slowest).toEqual(app.barriers().toSorted((a, b) => b.durationMs - a.durationMs))
  expect(settled).toBe(5)
  expect(
    Object.fromEntries(
      Object.entries(boundaries).map(([boundary, { outcomes, waits, flushes }]) => [
        boundary,
        [outcomes.dispatched, waits.count, flushes.count],
      ]),
    ),
  ).toEqual({
    step: [2, 2, 2],
    request: [2, 2, 2],
    tool: [1, 1, 1],
    turn: [0, 0, 0],
  })
  expect(strategies).toMatchObject([{ name: 'default', decisions: { flush: 5, start: 0, skip: 0 }, unguarded: 0 }])
  expect([failures, open, gauges.strategy]).toEqual([[], [], 'default'])
})

test('a barrier whose flush hangs is listed with its session, call and an age that grows; released, it is settled', async () => {
  const { app, state } = await createInspected()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () =>
    app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool') ? gate.promise : undefined
  const { agent } = await app.createAgent('my-session')
  const said = app.say(agent, 'hi')
  await vi.waitFor(async () => expect((await state()).open).toMatchObject([{ boundary: 'tool' }]))
  const [first] = (await state()).open
  expect(first).toMatchObject({
    boundary: 'tool',
    sessionId: 'my-session',
    callId: 'call-a',
    toolName: 'write',
    waiting: true,
  })
  await vi.waitFor(async () => expect((await state()).open[0]?.ageMs).toBeGreaterThan((first?.ageMs ?? 0) + 20))
  expect((await state()).gauges).toMatchObject({ active: { tool: 1 } })
  gate.resolve()
  await said
  const { open, slowest } = await state()
  expect(open).toEqual([])
  expect(slowest[0]).toMatchObject({ boundary: 'tool', callId: 'call-a' })
})

test('a rejection is a failure of its class with the barrier it hit, and without the message of the error', async () => {
  const { app, port, state } = await createInspected()
  app.flushes.on = () => {
    if (app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')) throw storageError('ENOSPC')
  }
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  const { failures, boundaries } = await state()
  expect(failures).toMatchObject([
    { errorType: 'ENOSPC', count: 1, last: { boundary: 'tool', callId: 'call-a', outcome: 'rejected' } },
  ])
  expect(boundaries.tool.outcomes).toEqual({ dispatched: 0, rejected: 1, aborted: 0, timeout: 0 })
  expect((await ask(port, { path: '/api/state' })).body).not.toMatch(/no space left|somewhere\/private/)
})

test('of each class the last failure is kept, the newest class first', async () => {
  const fake = await createFake()
  vi.useFakeTimers({ toFake: ['Date'] })
  for (const [at, errorType, callId] of [
    [1, 'EIO', 'a'],
    [2, 'ENOSPC', 'b'],
    [3, 'EIO', 'c'],
  ] as const) {
    vi.setSystemTime(at)
    fake.announce({ errorType, callId, outcome: 'rejected', flushOutcome: 'rejected' })
  }
  vi.useRealTimers()
  const { failures } = await stateOf(fake.port)
  expect(failures.map(({ errorType, count, lastAt, last }) => [errorType, count, lastAt, last.callId])).toEqual([
    ['EIO', 2, 3, 'c'],
    ['ENOSPC', 1, 2, 'b'],
  ])
})

test('the decisions of a mounted strategy are counted under its name, with the reasons of its skips', async () => {
  const { app, state } = await createInspected({}, [[coalesced]])
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  const { strategies, gauges } = await state()
  expect(gauges.strategy).toBe('coalesced')
  const [{ decisions, reasons } = { decisions: undefined, reasons: {} }] = strategies
  expect(decisions).toEqual({ flush: 3, start: 0, skip: 2 })
  expect(Object.values(reasons)).toEqual([2])
})

test('calls that crash recovery answered are counted by verdict and listed', async () => {
  const root = tempFolder()
  const child = spawn(process.execPath, [CRASH_CHILD, root, 'tool'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) if (line === 'at tool') break
  child.kill('SIGKILL')
  await exited
  const { app, state } = await createInspected({ root })
  await app.resumeAgent('victim')
  const { recovered, recoveredCalls } = await state()
  expect(recovered).toEqual({ unknown: 1, not_started: 1 })
  expect(
    new Set(recoveredCalls.map(({ recovery, callId, sessionId }) => `${recovery} ${callId} ${sessionId}`)),
  ).toEqual(new Set(['not_started call-b victim', 'unknown call-a victim']))
})

test('a histogram has a value on a bound below it, and a value beyond the last bound in the last place', async () => {
  const fake = await createFake()
  fake.announce(
    { durationMs: 1 },
    { durationMs: 1.01 },
    { durationMs: 0 },
    { durationMs: 61_000 },
    { durationMs: 2, flushMs: 2, sharedFlush: true },
  )
  const { bucketsSeconds, boundaries } = await stateOf(fake.port)
  const { counts, count, maxMs } = boundaries.tool.waits
  const at = bucketsSeconds.indexOf(0.001)
  expect([counts[at], counts[at + 1], counts[0], counts.at(-1)]).toEqual([1, 2, 1, 1])
  expect([counts.length, count, maxMs]).toEqual([bucketsSeconds.length + 1, 5, 61_000])
  // A shared flush is counted by the barrier that tells of it.
  expect(boundaries.tool.flushes.count).toBe(4)
})

test('whatever happens, no list grows beyond its bound, and a text of a megabyte is cut', async () => {
  const fake = await createFake()
  const long = 'x'.repeat(1_000_000)
  for (let index = 0; index < 10_000; index += 1) {
    fake.announce({
      durationMs: index % 777,
      toolName: `${index}${long.slice(0, index % 300)}`,
      strategy: `s${index}`,
      reason: `r${index}`,
      errorType: 'EIO',
    })
  }
  for (let index = 0; index < 1_000; index += 1)
    fake.announce({ kind: 'recovered', recovery: 'unknown', sessionId: `s${index}`, callId: long, turn: 1, step: 1 })
  fake.announce({ durationMs: 900_000, toolName: long, sessionId: long, strategy: long, reason: '__proto__' })
  fake.open = Array.from({ length: 1_000 }, (_, id) => ({
    id,
    boundary: 'tool',
    guarded: true,
    sessionId: long,
    delegationDepth: 0,
    pendingEvents: 1,
    strategy: 's',
    ageMs: 1,
    waiting: true,
  }))
  const { body } = await ask(fake.port, { path: '/api/state' })
  const state = JSON.parse(body) as inspector.InspectorState
  expect([state.open.length, state.last.length, state.slowest.length, state.recoveredCalls.length]).toEqual([
    200, 500, 50, 50,
  ])
  expect([state.settled, state.recovered.unknown, state.failures.length]).toEqual([10_001, 1_000, 1])
  expect(state.strategies.length).toBe(17)
  expect(Math.max(...state.strategies.map(({ reasons }) => Object.keys(reasons).length))).toBeLessThanOrEqual(9)
  expect(state.last[0]?.toolName).toBe(`${'x'.repeat(200)}…`)
  expect(state.last[0]).toBeDefined()
  expect(body.length).toBeLessThan(1_000_000)
  expect(state.bounds).toEqual(BOUNDS)
})

test('the ring keeps the newest, the slowest list the longest, and never one that did not wait', () => {
  const ring = new Ring<number>(3)
  for (const entry of [1, 2, 3, 4, 5]) ring.add(entry)
  expect([ring.newest(), ring.newest(2), ring.newest(0), ring.added]).toEqual([[5, 4, 3], [5, 4], [], 5])
  const slowest = new Slowest(3)
  const kept = [5, 0, 1, 9, 3, 4, 4, 0.5].map((durationMs) => slowest.add({ durationMs } as never))
  expect(kept).toEqual([true, false, true, true, true, true, false, false])
  expect(slowest.entries.map(({ durationMs }) => durationMs)).toEqual([9, 5, 4])
  expect(slowest.version).toBe(5)
})

test('it comes and goes with the policy, and begins at 0 again under another name', async () => {
  const { app, state, port } = await createInspected()
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  const before = await state()
  await app.plugins[1]?.restart()
  await vi.waitFor(async () => expect((await state()).instance).not.toBe(before.instance))
  expect((await state()).settled).toBe(0)
  await app.plugins[1]?.dispose()
  await vi.waitFor(() => expect(ask(port, { path: '/' })).rejects.toThrow('ECONNREFUSED'))
})

test('with its port taken the policy guards as ever, and one error names the port', async () => {
  const first = await createInspected()
  const app = await createApp({ plugins: [[policy], [inspector, { port: first.port }]] })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(app.barriers().length).toBeGreaterThan(0)
  await vi.waitFor(() =>
    expect(app.logs.filter((line) => line.includes('checkpoint-inspector: cannot listen'))).toHaveLength(1),
  )
  expect(app.logs.find((line) => line.includes('cannot listen'))).toContain(
    `127.0.0.1:${first.port}: the port is taken`,
  )
})
