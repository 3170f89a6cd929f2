import { getEventListeners } from 'node:events'
import { expect, test, vi } from 'vitest'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, summary } from './support/app.ts'

/** An app in which one flush, counted from 1, hangs until the test lets it go. */
async function createHung(
  hungFlush: number,
  answers: ConstructorParameters<typeof ScriptedModel>[0],
  config: object = {},
) {
  const gate = Promise.withResolvers<void>()
  // The flush of a hung turn may be left for ever: nobody else handles its rejection.
  gate.promise.catch(() => {})
  const ran: string[] = []
  const app = await createApp({
    model: new ScriptedModel(answers),
    config: { turnBoundary: false, ...config },
    tools: [createTool('write', () => ran.push('write'))],
  })
  app.model.onRequest = () => ran.push('adapter')
  app.flushes.on = () => (app.flushes.count === hungFlush ? gate.promise : undefined)
  const { agent } = await app.createAgent()
  return { app, agent, gate, ran, hung: () => vi.waitFor(() => expect(app.flushes.count).toBe(hungFlush)) }
}

const CASES = [
  { boundary: 'step', hungFlush: 1, ran: [] },
  { boundary: 'request', hungFlush: 2, ran: [] },
  { boundary: 'tool', hungFlush: 3, ran: ['adapter'] },
] as const

for (const late of ['resolves', 'rejects'] as const) {
  for (const { boundary, hungFlush, ran } of CASES) {
    test(`[D07] a turn cancelled while its ${boundary} flush hangs is idle at once; the flush that ${late} later changes nothing`, async () => {
      const unhandled = vi.fn()
      process.on('unhandledRejection', unhandled)
      const hung = await createHung(hungFlush, [[{ name: 'write', id: 'call-a' }]])
      const { app, agent, gate } = hung
      const turn = app.say(agent, 'hi')
      await hung.hung()
      expect(app.ctx.checkpoints.open()).toMatchObject([{ boundary, waiting: true }])
      agent.cancel({ kind: 'user' } as never)
      await turn
      expect(agent.status).toBe('idle')
      expect(app.ctx.checkpoints.open()).toEqual([])
      expect(hung.ran).toEqual(ran)
      const end = agent.session.events.findLast((event) => event.type === 'turn/end')
      expect(end?.data).toMatchObject({ reason: { kind: 'aborted' } })
      const before = { records: app.records.length, events: agent.session.seq }

      if (late === 'resolves') gate.resolve()
      else gate.reject(storageError('EIO'))
      // The store ends the flushes of a session in order.
      await app.ctx.sessions.flush(agent.session)
      await new Promise((resolve) => setImmediate(resolve))
      expect({ records: app.records.length, events: agent.session.seq }).toEqual(before)
      expect(summary(app.barriers()).at(-1)).toBe(`${boundary}:aborted:pending`)

      await app.say(agent, 'again')
      expect(agent.session.events.findLast((event) => event.type === 'turn/end')?.data).toMatchObject({
        reason: { kind: 'completed' },
      })
      expect(unhandled).not.toHaveBeenCalled()
      process.off('unhandledRejection', unhandled)
    })
  }
}

test("[D07] a call cancelled at its barrier gets the host's own ABORTED_BEFORE_DISPATCH result, once", async () => {
  const { app, agent, ...hung } = await createHung(1, [])
  const controller = new AbortController()
  const call = { callId: 'c' as never, name: 'write', arguments: {}, agent }
  const pending = app.ctx.tools.execute({ ...call, signal: controller.signal })
  await hung.hung()
  controller.abort()
  const ours = await pending
  // The host makes the same result for a call that is cancelled before it is prepared.
  const hosts = await app.ctx.tools.execute({ ...call, signal: AbortSignal.abort() })
  expect(ours).toEqual(hosts)
  expect(ours.error?.info).toEqual({ name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' })
  expect(hung.ran).toEqual([])
})

test('[D07] a request cancelled at its barrier ends with one aborted chunk, and its adapter is never called', async () => {
  const { app, agent, ...hung } = await createHung(1, ['never'])
  const controller = new AbortController()
  const request = {
    provider: 'scripted',
    model: 'm',
    messages: [],
    sessionId: agent.session.id,
    signal: controller.signal,
  }
  const chunks: unknown[] = []
  const reading = (async () => {
    for await (const chunk of app.ctx.llm.stream(request)) chunks.push(chunk)
  })()
  await hung.hung()
  controller.abort()
  await reading
  expect(chunks).toMatchObject([{ type: 'finish', reason: { kind: 'aborted', failure: { code: 'ABORTED' } } }])
  expect(hung.ran).toEqual([])
})

test('[D13] return() while the barrier is pending is answered at once and settles it as aborted', async () => {
  const { app, agent, ...hung } = await createHung(1, ['never'])
  const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
  const iterator = app.ctx.llm.stream(request)[Symbol.asyncIterator]()
  const pulls = [iterator.next(), iterator.next()]
  await hung.hung()
  await expect(iterator.return?.('left')).resolves.toEqual({ done: true, value: 'left' })
  await expect(Promise.all(pulls)).resolves.toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
  ])
  expect(summary(app.barriers())).toEqual(['request:aborted:pending'])
  expect(hung.ran).toEqual([])
})

test('a consumer that leaves in the tick after the flush ended is an abort, for its adapter never ran', async () => {
  for (let depth = 0; depth < 12; depth += 1) {
    const { app, agent, gate, ...hung } = await createHung(1, ['never'])
    const iterator = app.ctx.llm
      .stream({ provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id })
      [Symbol.asyncIterator]()
    const pull = iterator.next()
    await hung.hung()
    gate.resolve()
    for (let tick = 0; tick < depth; tick += 1) await Promise.resolve()
    void iterator.return?.()
    await pull
    await vi.waitFor(() => expect(app.barriers()).toHaveLength(1))
    expect([depth, app.barriers()[0]?.outcome]).toEqual([depth, hung.ran.length === 0 ? 'aborted' : 'dispatched'])
  }
})

test('pulls made while the barrier is pending get the chunks in order', async () => {
  const { app, agent, gate, ...hung } = await createHung(1, ['hello'])
  const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
  const iterator = app.ctx.llm.stream(request)[Symbol.asyncIterator]()
  const pulls = [iterator.next(), iterator.next(), iterator.next()]
  await hung.hung()
  gate.resolve()
  const chunks = await Promise.all(pulls)
  expect(chunks.map((chunk) => (chunk.value as { type: string }).type)).toEqual([
    'block-start',
    'text-delta',
    'block-end',
  ])
  expect(hung.ran).toEqual(['adapter'])
})

test('what is cancelled before its barrier opens asks for no flush', async () => {
  const { app, agent } = await createHung(0, ['never'])
  const request = {
    provider: 'scripted',
    model: 'm',
    messages: [],
    sessionId: agent.session.id,
    signal: AbortSignal.abort(),
  }
  const chunks: unknown[] = []
  for await (const chunk of app.ctx.llm.stream(request)) chunks.push(chunk)
  expect(chunks).toMatchObject([{ type: 'finish', reason: { kind: 'aborted' } }])
  expect(app.flushes.count).toBe(0)
  expect(summary(app.barriers())).toEqual(['request:aborted:none'])
})

test('a cancellation in the tick in which the flush ends is reported as durable and aborted', async () => {
  const { app, agent, gate, ...hung } = await createHung(1, [])
  const controller = new AbortController()
  const call = { callId: 'c' as never, name: 'write', arguments: {}, agent, signal: controller.signal }
  const pending = app.ctx.tools.execute(call)
  await hung.hung()
  // The barrier takes its listener off when the flush ends, before the host goes on: that is the tick to hit.
  const spy = vi.spyOn(controller.signal, 'removeEventListener')
  const original = spy.getMockImplementation() ?? AbortSignal.prototype.removeEventListener.bind(controller.signal)
  spy.mockImplementation((...args) => {
    original(...(args as Parameters<typeof original>))
    controller.abort()
  })
  gate.resolve()
  await expect(pending).resolves.toMatchObject({ isError: true })
  expect(summary(app.barriers())).toEqual(['tool:aborted:durable'])
  expect(hung.ran).toEqual([])
})

test('[D09] a thousand calls and a thousand rejected ones on one signal leave no listener and no warning', async () => {
  const warned = vi.fn()
  process.on('warning', warned)
  const { app, agent } = await createHung(0, [])
  const { signal } = new AbortController()
  const call = (index: number) =>
    app.ctx.tools.execute({ callId: `c${index}` as never, name: 'write', arguments: {}, agent, signal })
  for (let index = 0; index < 1_000; index += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, offset) => call(index + offset)))
  }
  app.flushes.on = () => Promise.reject(storageError('ENOSPC'))
  for (let index = 0; index < 1_000; index += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, offset) => call(index + offset)))
  }
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(warned).not.toHaveBeenCalled()
  process.off('warning', warned)
  expect(app.barriers()).toHaveLength(2_000)
})

test('[D07] a limit rejects a hung barrier as a timeout, and without one it stays open', async () => {
  const { app, agent, ...hung } = await createHung(1, [], { timeoutMs: 20 })
  const call = { callId: 'c' as never, name: 'write', arguments: {}, agent, signal: new AbortController().signal }
  await expect(app.ctx.tools.execute(call)).resolves.toMatchObject({
    isError: true,
    error: { message: expect.stringMatching(/not durable within \d+ ms/) },
  })
  expect(app.barriers()).toMatchObject([{ outcome: 'timeout', flushOutcome: 'pending', errorType: 'timeout' }])
  expect(hung.ran).toEqual([])

  const unlimited = await createHung(1, [])
  void unlimited.app.ctx.tools.execute({ ...call, agent: unlimited.agent })
  await unlimited.hung()
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(unlimited.app.ctx.checkpoints.open()).toHaveLength(1)
  unlimited.gate.resolve()
})

test('an open barrier older than overdueMs is named in the log, once', async () => {
  const { app, agent, gate, ...hung } = await createHung(1, [], { overdueMs: 1 })
  const pending = app.ctx.tools.execute({
    callId: 'c' as never,
    name: 'write',
    arguments: {},
    agent,
    signal: new AbortController().signal,
  })
  await hung.hung()
  await vi.waitFor(() => expect(app.logs.join('\n')).toMatch(/checkpoint tool of tool write .* is open for/), {
    timeout: 5_000,
  })
  gate.resolve()
  await pending
  expect(app.logs.filter((line) => line.includes('is open for'))).toHaveLength(1)
})
