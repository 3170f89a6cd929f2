import { CheckpointError } from '../src/index.ts'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { expect, test, vi } from 'vitest'
import { createTool, ScriptedModel, textChunks } from '../src/testing/harness.ts'
import { createApp, storageError, summary } from './support/app.ts'
import { isOnDisk, readLog } from './support/log.ts'

/** An app that writes down the order of flushes, adapter calls and tool bodies. */
async function createOrdered(answers: ConstructorParameters<typeof ScriptedModel>[0], config?: object, policy = true) {
  const order: string[] = []
  const model = new ScriptedModel(answers)
  model.onRequest = () => order.push('adapter')
  const app = await createApp({
    model,
    config,
    ...(policy ? {} : { plugins: [] }),
    tools: [
      createTool('write', () => order.push('write')),
      createTool('read', () => order.push('read'), { parallel: true }),
    ],
  })
  app.flushes.on = async () => {
    order.push('flush:start')
    await new Promise((resolve) => setImmediate(resolve))
    order.push('flush:end')
  }
  return { app, model, order }
}

const FLUSH = ['flush:start', 'flush:end']

test('request and step wait for a flush each before the adapter is called', async () => {
  const { app, order } = await createOrdered(['hello'], { turnBoundary: false })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual([...FLUSH, ...FLUSH, 'adapter'])
  expect(summary(app.barriers())).toEqual(['step:dispatched:durable', 'request:dispatched:durable'])
})

test('without a policy nothing waits', async () => {
  const { app, order } = await createOrdered(['hello'], undefined, false)
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual(['adapter'])
})

test('a tool body runs only after its recorded call is durable', async () => {
  const onDisk: boolean[] = []
  const model = new ScriptedModel([[{ name: 'write', id: 'call-a' }]])
  const app = await createApp({ model, tools: [createTool('write', () => onDisk.push(isOnDisk(app.root, 'call-a')))] })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(onDisk).toEqual([true])
})

test('a tool body runs after one flush of its own', async () => {
  const { app, order } = await createOrdered([[{ name: 'write' }]], { turnBoundary: false })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual([...FLUSH, ...FLUSH, 'adapter', ...FLUSH, 'write', ...FLUSH, ...FLUSH, 'adapter'])
})

test('the preceding response and results are durable before the next request is derived', async () => {
  const types: string[][] = []
  const { app } = await createOrdered([[{ name: 'write' }]])
  app.ctx.on('agent/request', async (_payload, next) => {
    types.push(readLog(app.root).map((event) => event.type))
    return next()
  })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(types[1]).toEqual(expect.arrayContaining(['assistant/message', 'tool/call', 'tool/result', 'step/end']))
})

test('a stream that is never pulled opens no barrier, and one that is closed before its first pull neither', async () => {
  const { app, order } = await createOrdered([])
  const { agent } = await app.createAgent()
  const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
  app.ctx.llm.stream(request)
  const closed = app.ctx.llm.stream(request)[Symbol.asyncIterator]()
  await expect(closed.return?.()).resolves.toEqual({ done: true, value: undefined })
  await expect(closed.next()).resolves.toEqual({ done: true, value: undefined })
  expect(order).toEqual([])
  expect(app.ctx.checkpoints.open()).toEqual([])
})

test('a request without a live session and a call without an agent pass through', async () => {
  const { app, order } = await createOrdered(['hello'])
  for await (const chunk of app.ctx.llm.stream({ provider: 'scripted', model: 'm', messages: [] })) void chunk
  for await (const chunk of app.ctx.llm.stream({
    provider: 'scripted',
    model: 'm',
    messages: [],
    sessionId: 'gone' as never,
  }))
    void chunk
  await app.ctx.tools.execute({
    callId: 'c' as never,
    name: 'write',
    arguments: {},
    signal: new AbortController().signal,
  })
  expect(order).toEqual(['adapter', 'adapter', 'write'])
  expect(app.barriers()).toEqual([])
})

test("[D06] a nested call reuses the outer call's barrier", async () => {
  const { app, order } = await createOrdered([])
  const { agent } = await app.createAgent()
  const { signal } = new AbortController()
  const call = { name: 'write', arguments: {}, agent, signal }
  await app.ctx.tools.execute({ ...call, callId: 'outer' as never })
  await app.ctx.tools.execute({ ...call, callId: 'inner' as never, rootCallId: 'outer' as never, parent: {} as never })
  expect(order).toEqual([...FLUSH, 'write', 'write'])
  expect(app.barriers().map((barrier) => barrier.callId)).toEqual(['outer'])
})

test('the barrier of a call comes after its policy: a denied call opens none', async () => {
  const { app, order } = await createOrdered([[{ name: 'write' }]], { turnBoundary: false })
  app.ctx.on('tools/pre-execute', async () => ({ kind: 'deny', reason: 'no' }))
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).not.toContain('write')
  expect(app.barriers().map((barrier) => barrier.boundary)).toEqual(['step', 'request', 'step', 'request'])
})

test('a rejected flush at step fails the turn before another request', async () => {
  const { app, order } = await createOrdered(['never'], { turnBoundary: false })
  const error = storageError('ENOSPC')
  const seen: unknown[] = []
  app.ctx.on('agent/error', (payload) => void seen.push(payload.error))
  app.flushes.on = () => Promise.reject(error)
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual([])
  expect(seen).toEqual([error])
  expect(seen[0]).toBe(error)
  expect(app.barriers()).toMatchObject([
    { boundary: 'step', outcome: 'rejected', flushOutcome: 'rejected', errorType: 'ENOSPC' },
  ])
  expect(lastTurnEnd(agent)).toMatchObject({ kind: 'error' })
})

test('a rejected flush at request lets no adapter be called, and the rejection arrives as the same object', async () => {
  const { app, order } = await createOrdered(['never'], { turnBoundary: false })
  const error = storageError('EIO')
  const { agent } = await app.createAgent()
  app.flushes.on = () => Promise.reject(error)
  const stream = app.ctx.llm.stream({ provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id })
  const iterator = stream[Symbol.asyncIterator]()
  await expect(iterator.next()).rejects.toBe(error)
  await expect(iterator.next()).resolves.toEqual({ done: true, value: undefined })
  expect(order).toEqual([])
})

test('a rejected flush at tool lets no body run; the model sees the message and the next barrier is a new flush', async () => {
  const { app, order } = await createOrdered([[{ name: 'write' }], 'sorry'], { turnBoundary: false })
  const error = storageError('ENOSPC')
  app.flushes.on = undefined
  let calls = 0
  app.ctx.on('session/flush', () => {
    calls += 1
    return calls === 3 ? Promise.reject(error) : Promise.resolve()
  })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual(['adapter', 'adapter'])
  expect(results(agent)).toMatchObject([{ isError: true }])
  expect(JSON.stringify(results(agent))).toContain(error.message)
  expect(summary(app.barriers())).toEqual([
    'step:dispatched:durable',
    'request:dispatched:durable',
    'tool:rejected:rejected',
    'step:dispatched:durable',
    'request:dispatched:durable',
  ])
  expect(lastTurnEnd(agent)).toEqual({ kind: 'completed' })
})

test('[D02] parallel calls whose flush is rejected for the first only keep one result each, in model order', async () => {
  const { app, order } = await createOrdered(
    [
      [
        { name: 'read', id: 'a' },
        { name: 'read', id: 'b' },
      ],
    ],
    { turnBoundary: false },
  )
  let calls = 0
  app.flushes.on = undefined
  app.ctx.on('session/flush', () => {
    calls += 1
    return calls === 3 ? Promise.reject(storageError('ENOSPC')) : Promise.resolve()
  })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order.filter((entry) => entry === 'read')).toHaveLength(1)
  expect(results(agent).map(({ callId, isError }) => [callId, isError])).toEqual([
    ['a', true],
    ['b', false],
  ])
})

test('the store is asked once per barrier, and no seq is written twice or missed under parallel calls', async () => {
  const calls = Array.from({ length: 8 }, (_, index) => ({ name: 'read', id: `p${index}` }))
  const missing: string[] = []
  const model = new ScriptedModel([calls])
  const app = await createApp({
    model,
    tools: [
      createTool('read', (_args, exec) => void (isOnDisk(app.root, exec.callId) || missing.push(exec.callId)), {
        parallel: true,
      }),
    ],
  })
  app.flushes.on = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(readLog(app.root)).toHaveLength(agent.session.seq))
  expect(missing).toEqual([])
  expect(readLog(app.root).map((event) => event.seq)).toEqual(
    Array.from({ length: agent.session.seq }, (_, seq) => seq),
  )
  await vi.waitFor(() => expect(app.barriers()).toHaveLength(app.flushes.count))
})

test('the request reaches the adapter as the same object, with no event, message or tool of ours', async () => {
  const plain = await createApp({
    plugins: [],
    model: new ScriptedModel([[{ name: 'write', id: 'x' }]]),
    tools: [createTool('write', () => 'ok')],
  })
  const guarded = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'x' }]]),
    tools: [createTool('write', () => 'ok')],
  })
  const [without, with_] = await Promise.all(
    [plain, guarded].map(async (app) => {
      const { agent } = await app.createAgent('same')
      await app.say(agent, 'hi')
      return {
        types: agent.session.events.map((event) => event.type),
        requests: JSON.stringify(
          app.model.requests.map(({ messages, ...request }) => ({
            ...request,
            messages: messages.map(({ id: _id, ...rest }) => rest),
          })),
        ),
      }
    }),
  )
  expect(with_).toEqual(without)
})

test('a hook of ours that is unloaded is gone: no flush at any boundary', async () => {
  const { app, order } = await createOrdered([[{ name: 'write' }]])
  await app.plugins.at(-1)?.dispose()
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(order).toEqual(['adapter', 'write', 'adapter'])
})

test('requireConfirmed rejects a flush in which no backend took part; by default it is released, warned about and counted', async () => {
  for (const requireConfirmed of [false, true]) {
    const { app } = await createOrdered(['hello'], { requireConfirmed, turnBoundary: false })
    const { agent } = await app.createAgent()
    // The host answers false when no session/flush listener took part; the policy reads the method when it is mounted.
    const store = (app.ctx.sessions as unknown as Record<symbol, { flush(): Promise<boolean> }>)[
      Symbol.for('cordis.original')
    ]
    if (store === undefined) throw new Error('the host no longer wraps its services')
    vi.spyOn(store, 'flush').mockResolvedValue(false)
    await app.plugins.at(-1)?.restart()
    const seen: unknown[] = []
    app.ctx.checkpoints.observe((record) => seen.push(record))
    const iterator = app.ctx.llm
      .stream({ provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id })
      [Symbol.asyncIterator]()
    if (requireConfirmed) {
      await expect(iterator.next()).rejects.toThrow(CheckpointError)
      expect(seen).toMatchObject([
        { outcome: 'rejected', flushOutcome: 'unconfirmed', errorType: 'unconfirmed', unguarded: false },
      ])
    } else {
      await expect(iterator.next()).resolves.toMatchObject({ done: false })
      expect(seen).toMatchObject([{ outcome: 'dispatched', flushOutcome: 'unconfirmed', unguarded: true }])
      expect(app.logs.filter((line) => line.includes('no persistence backend took part'))).toHaveLength(1)
    }
  }
})

test('a host whose flush throws at once is refused like one that rejects', async () => {
  const { app, order } = await createOrdered(['never'], { turnBoundary: false })
  const { agent } = await app.createAgent()
  const store = (app.ctx.sessions as unknown as Record<symbol, { flush(): Promise<boolean> }>)[
    Symbol.for('cordis.original')
  ]
  if (store === undefined) throw new Error('the host no longer wraps its services')
  const error = storageError('EIO')
  vi.spyOn(store, 'flush').mockImplementation(() => {
    throw error
  })
  await app.plugins.at(-1)?.restart()
  const stream = app.ctx.llm.stream({ provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id })
  await expect(stream[Symbol.asyncIterator]().next()).rejects.toBe(error)
  expect(order).toEqual([])
  expect(app.ctx.checkpoints.open()).toEqual([])
})

test('[D13] consumers that leave early close the adapter stream, and the barrier is settled once', async () => {
  let closed = 0
  const answer = async function* () {
    try {
      yield* textChunks('long')
    } finally {
      closed += 1
    }
  }
  const { app } = await createOrdered([answer, answer], { turnBoundary: false })
  const { agent } = await app.createAgent()
  const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
  for await (const chunk of app.ctx.llm.stream(request)) {
    void chunk
    break
  }
  await expect(
    (async () => {
      for await (const chunk of app.ctx.llm.stream(request)) throw new Error(chunk.type)
    })(),
  ).rejects.toThrow('block-start')
  expect(closed).toBe(2)
  expect(summary(app.barriers())).toEqual(['request:dispatched:durable', 'request:dispatched:durable'])
  expect(app.ctx.checkpoints.open()).toEqual([])
})

function results(agent: Agent) {
  return agent.session.events.flatMap((event) =>
    event.type === 'tool/result'
      ? [
          {
            callId: event.data.message.source.callId as string,
            ...(event.data.message.content[0] as { isError?: boolean }),
          },
        ]
      : [],
  )
}

function lastTurnEnd(agent: Agent) {
  const event = agent.session.events.findLast((candidate) => candidate.type === 'turn/end')
  return event?.type === 'turn/end' ? event.data.reason : undefined
}
