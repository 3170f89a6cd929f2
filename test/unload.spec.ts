import JsonlSessionPersistence from '@deepseek-ai/dsh-session-persistence-jsonl'
import { expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { METRIC_POLICY_ACTIVE } from '../src/semconv.ts'
import { createApp, summary } from './support/app.ts'
import { registerSdk } from './support/sdk.ts'

const REQUEST = { provider: 'scripted', model: 'm', messages: [] }

async function createGated() {
  const gate = Promise.withResolvers<void>()
  const ran: string[] = []
  const app = await createApp({
    model: new ScriptedModel(['hello']),
    config: { turnBoundary: false },
    tools: [createTool('write', () => ran.push('write'))],
  })
  app.model.onRequest = () => ran.push('adapter')
  app.flushes.on = () => gate.promise
  const { agent } = await app.createAgent()
  const unload = async () => app.plugins.at(-1)?.dispose()
  const call = () =>
    app.ctx.tools.execute({
      callId: 'c' as never,
      name: 'write',
      arguments: {},
      agent,
      signal: new AbortController().signal,
    })
  return { app, agent, gate, ran, unload, call }
}

test('[D01] a stream that was made but not pulled when the policy is unloaded refuses with an error that names the policy', async () => {
  const { app, agent, gate, ran, unload } = await createGated()
  const iterator = app.ctx.llm.stream({ ...REQUEST, sessionId: agent.session.id })[Symbol.asyncIterator]()
  await unload()
  gate.resolve()
  await expect(iterator.next()).rejects.toThrow(/dsh-checkpoint-otel\) was unloaded before this request was durable/)
  await expect(iterator.next()).resolves.toMatchObject({ done: true })
  expect(ran).toEqual([])
})

test('[D01] a call whose flush is held when the policy is unloaded gets one error result, its body never runs, nothing stays open', async () => {
  const { app, gate, ran, unload, call } = await createGated()
  const checkpoints = app.ctx.checkpoints
  const pending = call()
  await vi.waitFor(() => expect(checkpoints.open()).toHaveLength(1))
  await unload()
  const result = await pending
  gate.resolve()
  expect(result).toMatchObject({
    isError: true,
    error: { message: expect.stringContaining('was unloaded before this tool was durable') },
  })
  expect(ran).toEqual([])
  expect(checkpoints.open()).toEqual([])
  expect(checkpoints.state()).toMatchObject({ active: { tool: 0 }, oldestAgeMs: 0 })
  expect(app.barriers()).toMatchObject([{ outcome: 'rejected', flushOutcome: 'pending', errorType: '_OTHER' }])
})

test('a stream that passed its barrier goes on after the policy is unloaded', async () => {
  const { app, agent, gate, unload } = await createGated()
  gate.resolve()
  const iterator = app.ctx.llm.stream({ ...REQUEST, sessionId: agent.session.id })[Symbol.asyncIterator]()
  await iterator.next()
  await unload()
  await expect(iterator.next()).resolves.toMatchObject({ value: { type: 'text-delta' } })
})

test('unloading says that nothing waits any more; the end of the whole application does not', async () => {
  const { app, gate, unload } = await createGated()
  gate.resolve()
  await unload()
  expect(app.logs.filter((line) => line.includes('nothing waits for the session log'))).toHaveLength(1)
  const other = await createGated()
  other.gate.resolve()
  await other.app.dispose()
  expect(other.app.logs.filter((line) => line.includes('nothing waits'))).toEqual([])
})

test('[D01] the policy goes with its backend, says so, and is back with it', async () => {
  const { app, agent, gate, ran } = await createGated()
  gate.resolve()
  await app.persistence.dispose()
  expect(app.ctx.get('checkpoints')).toBeUndefined()
  expect(app.logs.join('\n')).toContain('until it is mounted again nothing waits for the session log')
  for await (const chunk of app.ctx.llm.stream({ ...REQUEST, sessionId: agent.session.id })) void chunk
  expect(ran).toEqual(['adapter'])
  expect(app.barriers()).toEqual([])

  await app.mount(JsonlSessionPersistence, { root: app.root, compression: 'none' })
  await app.plugins.at(-1)?.await()
  expect(app.ctx.get('checkpoints')).toBeDefined()
})

test('after a remount each boundary flushes exactly once', async () => {
  const { app, agent, gate } = await createGated()
  gate.resolve()
  for (let round = 0; round < 5; round += 1) await app.plugins.at(-1)?.restart()
  app.ctx.checkpoints.observe((record) => app.records.push(record))
  app.flushes.count = 0
  await app.say(agent, 'hi')
  expect(summary(app.barriers())).toEqual(['step:dispatched:durable', 'request:dispatched:durable'])
  expect(app.flushes.count).toBe(2)
})

test('the stock policy beside ours is noticed and said once, whichever came first', async () => {
  const stock = await import('@deepseek-ai/dsh-session-checkpoint-policy')
  for (const plugins of [
    [[stock], [policy, {}]],
    [[policy, {}], [stock]],
  ] as const) {
    const app = await createApp({ plugins })
    await app.mount({ name: 'another', apply() {} })
    expect(app.logs.filter((line) => line.includes('another checkpoint policy is mounted'))).toHaveLength(1)
  }
  const alone = await createApp()
  expect(alone.logs.join('\n')).not.toContain('another checkpoint policy')
})

test('a second copy of the policy that cannot load leaves no trace in the gauges', async () => {
  const sdk = registerSdk()
  const app = await createApp()
  await expect(app.mount({ ...policy })).rejects.toThrow(/checkpoints/)
  expect(await sdk.points(METRIC_POLICY_ACTIVE)).toEqual([[{}, 1]])
})
