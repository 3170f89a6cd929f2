import { setImmediate as immediate } from 'node:timers/promises'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { expect, test, vi } from 'vitest'
import type { SettledBarrier } from '../src/index.ts'
import * as policy from '../src/index.ts'
import coalesced from '../src/strategies/coalesced.ts'
import pipelined from '../src/strategies/pipelined.ts'
import selective from '../src/strategies/selective.ts'
import { Disk } from '../src/testing/disk.ts'
import { MODEL, PROVIDER } from '../src/testing/harness.ts'
import { storageError, summary, type App } from './support/app.ts'
import { createUnder } from './support/strategies.ts'

test('a second strategy does not load; the error names the service and the plugin that provides it', async () => {
  const { app } = await createUnder(coalesced, {})
  await expect(app.mount(pipelined, {})).rejects.toThrow(
    'service "checkpointStrategy" has been registered at <checkpoint-strategy-coalesced>',
  )
  expect(app.ctx.checkpoints.state().strategy).toBe('coalesced')
  const { agent } = await app.createAgent()
  await app.say(agent, 'go')
  expect(new Set(app.barriers().map(({ strategy }) => strategy))).toEqual(new Set(['coalesced']))
})

test('the default is back when the strategy is unmounted, and another one can be mounted', async () => {
  const { app } = await createUnder(coalesced, {})
  await app.plugins[2]?.dispose()
  expect(app.ctx.checkpoints.state().strategy).toBe('default')
  await app.mount(pipelined, {})
  expect(app.ctx.checkpoints.state().strategy).toBe('pipelined')
})

for (const end of ['resolves', 'rejects'] as const) {
  test(`a strategy unmounted with a started write outstanding: the barrier tells the truth when it ${end}`, async () => {
    const disk = new Disk()
    const { app } = await createUnder(pipelined, {}, { disk, answers: [] })
    const { agent } = await app.createAgent()
    await app.ctx.sessions.flush(agent.session)
    const held = Promise.withResolvers<void>()
    disk.door = ({ number }) => (number === 1 ? held.promise : undefined)
    const saying = app.say(agent, 'go')
    await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toHaveLength(2))
    await app.plugins[2]?.dispose()
    expect(app.ctx.checkpoints.state()).toMatchObject({ strategy: 'default', active: { step: 1, request: 1 } })
    if (end === 'resolves') held.resolve()
    else held.reject(storageError('EIO'))
    await saying
    await vi.waitFor(() => expect(app.barriers()).toHaveLength(3))
    expect(app.barriers().map(({ strategy }) => strategy)).toEqual(['pipelined', 'pipelined', 'default'])
    expect(summary(app.barriers()).slice(0, 2)).toEqual([
      `step:dispatched:${end === 'resolves' ? 'durable' : 'rejected'}`,
      'request:dispatched:durable',
    ])
  })
}

test('the policy unmounted with a started write outstanding: its barrier ends as pending', async () => {
  const disk = new Disk()
  const { app } = await createUnder(pipelined, {}, { disk, answers: [] })
  const { agent } = await app.createAgent()
  await app.ctx.sessions.flush(agent.session)
  const held = Promise.withResolvers<void>()
  disk.door = ({ number }) => (number === 1 ? held.promise : undefined)
  const saying = app.say(agent, 'go')
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toHaveLength(2))
  await app.plugins[1]?.dispose()
  await saying
  held.resolve()
  expect(app.model.requests).toHaveLength(0)
  expect(summary(app.barriers())).toContain('step:dispatched:pending')
})

test('title requests of the session run through a strategy like the conversation', async () => {
  const { app } = await createUnder(coalesced, {}, { answers: ['a title', 'an answer'] })
  const { agent } = await app.createAgent()
  await request(app, agent, 'session-title')
  await app.say(agent, 'go')
  await immediate()
  expect(
    app
      .barriers()
      .map(({ boundary, purpose }) => `${boundary}:${purpose ?? ''}`)
      .slice(0, 3),
  ).toEqual(['request:session-title', 'step:', 'request:'])
})

/** One request of the session beside its conversation, read to its end. */
async function request(app: App, agent: Agent, purpose: string): Promise<void> {
  const options = { provider: PROVIDER, model: MODEL, messages: [], sessionId: agent.session.id, purpose }
  for await (const chunk of app.ctx.llm.stream(options as never)) void chunk
}

test('selective ends with the policy that allowed it, and does not come back under one that does not', async () => {
  const { app } = await createUnder(selective, { tools: ['*'] }, { policy: { allowUnguarded: true } })
  expect(app.ctx.checkpoints.state().strategy).toBe('selective')
  await app.plugins[1]?.dispose()
  expect(app.ctx.get('checkpointStrategy')).toBeUndefined()
  await app.mount(policy, {})
  await vi.waitFor(() =>
    expect(app.logs.join('\n')).toContain('set allowUnguarded: true in the config of dsh-checkpoint-otel'),
  )
  expect(app.ctx.checkpoints.state().strategy).toBe('default')
  const { agent } = await app.createAgent()
  const records: SettledBarrier[] = []
  app.ctx.checkpoints.observe((record) => record.kind === 'barrier' && records.push(record))
  await app.say(agent, 'go')
  expect(records.filter(({ boundary }) => boundary === 'tool').map(({ decision }) => decision)).toEqual([
    'flush',
    'flush',
    'flush',
  ])
})
