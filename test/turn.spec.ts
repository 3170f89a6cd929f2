import { expect, test, vi } from 'vitest'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, summary } from './support/app.ts'
import { readLog } from './support/log.ts'

/** Long enough that write-behind has no part in what the tests see. */
const NO_WRITE_BEHIND = { writeBatchMaxDelayMs: 60_000 }

test('a turn that ended is on disk although nobody waited for it', async () => {
  const app = await createApp({ ...NO_WRITE_BEHIND, model: new ScriptedModel(['hello']) })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers().at(-1)).toMatchObject({ boundary: 'turn' }))
  expect(app.barriers().at(-1)).toMatchObject({ outcome: 'dispatched', flushOutcome: 'durable', decision: 'start' })
  expect(readLog(app.root).at(-1)?.type).toBe('turn/end')
})

test('with turnBoundary off the last answer waits for write-behind, as with the stock policy', async () => {
  const app = await createApp({
    ...NO_WRITE_BEHIND,
    model: new ScriptedModel(['hello']),
    config: { turnBoundary: false },
  })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(readLog(app.root).map((event) => event.type)).not.toContain('turn/end')
})

test('the agent is idle while the write of its turn still runs, and the write is listed as open', async () => {
  const gate = Promise.withResolvers<void>()
  const app = await createApp({ model: new ScriptedModel(['hello']) })
  app.flushes.on = () => (app.flushes.count === 3 ? gate.promise : undefined)
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toMatchObject([{ boundary: 'turn', waiting: false }]))
  expect(agent.status).toBe('idle')
  gate.resolve()
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
})

test('a failed write at the end of a turn fails nothing, is said, and the next turn goes on', async () => {
  const app = await createApp({ model: new ScriptedModel(['one', 'two']) })
  app.flushes.on = () => (app.flushes.count === 3 ? Promise.reject(storageError('ENOSPC')) : undefined)
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers()).toHaveLength(3))
  expect(app.barriers().at(-1)).toMatchObject({
    boundary: 'turn',
    outcome: 'dispatched',
    flushOutcome: 'rejected',
    errorType: 'ENOSPC',
  })
  expect(app.ctx.checkpoints.state().consecutiveFailures).toBe(1)
  expect(app.logs.filter((line) => /checkpoint turn .* failed: ENOSPC/.test(line))).toHaveLength(1)
  await app.say(agent, 'again')
  expect(agent.session.events.at(-1)?.data).toMatchObject({ reason: { kind: 'completed' } })
  expect(app.ctx.checkpoints.state().consecutiveFailures).toBe(0)
})

test('events of an idle session are flushed once, and what that flush appends is not flushed again', async () => {
  const app = await createApp({ ...NO_WRITE_BEHIND, model: new ScriptedModel(['hello']) })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers()).toHaveLength(3))
  const note = () =>
    agent.session.append(
      'session/title' as 'turn/start',
      { title: 't', messageSeqs: [], source: { kind: 'fallback' } } as never,
    )
  // A listener that appends in every flush would keep a periodic flush busy for ever.
  app.flushes.on = () => void note()
  note()
  expect(app.ctx.checkpoints.state().unflushedOldestAgeMs).toBeGreaterThan(0)
  await vi.waitFor(() => expect(summary(app.barriers()).slice(3)).toEqual(['turn:dispatched:durable']), {
    timeout: 5_000,
  })
  await new Promise((resolve) => setTimeout(resolve, 2_300))
  expect(app.barriers()).toHaveLength(4)
}, 15_000)

test('an agent that is disposed leaves no rejection and no open barrier behind', async () => {
  const app = await createApp({ model: new ScriptedModel(['hello']) })
  const handle = await app.createAgent()
  await app.say(handle.agent, 'hi')
  await handle.dispose()
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
  expect(app.barriers().filter((barrier) => barrier.errorType !== undefined)).toEqual([])
})

test('[D04] the unflushed age grows while background writes fail and no barrier happens, and one healthy session does not hide it', async () => {
  const app = await createApp({ model: new ScriptedModel(['a', 'b']), config: { turnBoundary: false } })
  const failing = await app.createAgent('failing')
  const healthy = await app.createAgent('healthy')
  app.flushes.on = (session) => (session.id === 'failing' ? Promise.reject(storageError('EIO')) : undefined)
  await app.say(failing.agent, 'hi')
  await app.say(healthy.agent, 'hi')
  const { checkpoints } = app.ctx
  const first = checkpoints.state()
  expect(first.consecutiveFailures).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 50))
  const second = checkpoints.state()
  expect(second.unflushedOldestAgeMs).toBeGreaterThanOrEqual(first.unflushedOldestAgeMs + 45)
  app.flushes.on = undefined
  await app.ctx.sessions.flush(failing.agent.session)
  await app.say(failing.agent, 'again')
  expect(checkpoints.state().consecutiveFailures).toBe(0)
})

test('[D04] a backend that rejects the third of ten flushes refuses one barrier and no other', async () => {
  const app = await createApp({ config: { turnBoundary: false }, tools: [createTool('write', () => 'ok')] })
  const { agent } = await app.createAgent()
  app.flushes.on = () => (app.flushes.count === 3 ? Promise.reject(storageError('ENOSPC')) : undefined)
  const failures: number[] = []
  for (let index = 0; index < 10; index += 1) {
    await app.ctx.tools.execute({
      callId: `c${index}` as never,
      name: 'write',
      arguments: {},
      agent,
      signal: new AbortController().signal,
    })
    failures.push(app.ctx.checkpoints.state().consecutiveFailures)
  }
  expect(failures).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
  expect(app.barriers().map((barrier) => barrier.outcome)).toEqual([
    'dispatched',
    'dispatched',
    'rejected',
    ...Array(7).fill('dispatched'),
  ])
})

test('[D04] a failed write of an idle session comes again by itself until the disk is back, and then no more', async () => {
  const app = await createApp({ ...NO_WRITE_BEHIND, model: new ScriptedModel(['hello']) })
  app.flushes.on = () =>
    app.flushes.count === 3 || app.flushes.count === 4 ? Promise.reject(storageError('ENOSPC')) : undefined
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  const turns = () =>
    app
      .barriers()
      .filter((barrier) => barrier.boundary === 'turn')
      .map((barrier) => barrier.flushOutcome)
  await vi.waitFor(() => expect(turns()).toEqual(['rejected', 'rejected', 'durable']), {
    timeout: 12_000,
    interval: 200,
  })
  expect(app.ctx.checkpoints.state()).toMatchObject({ consecutiveFailures: 0, unflushedOldestAgeMs: 0 })
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(turns()).toHaveLength(3)
}, 20_000)

test('a session that never had a turn is written once too', async () => {
  const app = await createApp(NO_WRITE_BEHIND)
  const { agent } = await app.createAgent()
  agent.session.append(
    'session/title' as 'turn/start',
    { title: 't', messageSeqs: [], source: { kind: 'fallback' } } as never,
  )
  await vi.waitFor(() => expect(summary(app.barriers())).toEqual(['turn:dispatched:durable']), { timeout: 5_000 })
  expect(app.barriers()).toMatchObject([{ events: 1 }])
  expect(app.ctx.checkpoints.state().unflushedOldestAgeMs).toBe(0)
})
