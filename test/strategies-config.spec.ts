import { describe, expect, test } from 'vitest'
import coalesced from '../src/strategies/coalesced.ts'
import pipelined from '../src/strategies/pipelined.ts'
import selective from '../src/strategies/selective.ts'
import { ALL_ON_DISK, createUnder } from './support/strategies.ts'

describe('agents a strategy applies to', () => {
  const cases: {
    config: object
    id: string
    meta: { delegationDepth?: number; agentPreset?: string }
    applies: boolean
  }[] = [
    { config: {}, id: 'main', meta: {}, applies: true },
    { config: {}, id: 'child', meta: { delegationDepth: 1 }, applies: true },
    { config: { subagents: 'exclude' }, id: 'main', meta: {}, applies: true },
    { config: { subagents: 'exclude' }, id: 'child', meta: { delegationDepth: 1 }, applies: false },
    { config: { subagents: 'only' }, id: 'main', meta: {}, applies: false },
    { config: { subagents: 'only' }, id: 'child', meta: { delegationDepth: 2 }, applies: true },
    { config: { agents: ['main'] }, id: 'main', meta: {}, applies: true },
    { config: { agents: ['main'] }, id: 'mainframe', meta: {}, applies: false },
    { config: { agents: ['research-*'] }, id: 'x', meta: { agentPreset: 'research-deep' }, applies: true },
    { config: { exceptAgents: ['research-*'] }, id: 'x', meta: { agentPreset: 'research-deep' }, applies: false },
    { config: { agents: ['*'], exceptAgents: ['payments/**'] }, id: 'payments/refund', meta: {}, applies: false },
    { config: { agents: ['*'], exceptAgents: ['payments/**'] }, id: 'docs/refund', meta: {}, applies: true },
    // Read as a negation, this would apply to every agent but one.
    { config: { agents: ['!main'] }, id: 'other', meta: {}, applies: false },
  ]
  for (const { config, id, meta, applies } of cases) {
    test(`${JSON.stringify(config)} ${applies ? 'applies' : 'does not apply'} to ${id} ${JSON.stringify(meta)}`, async () => {
      const { app } = await createUnder(coalesced, config, { answers: [[{ name: 'read' }, { name: 'read' }]] })
      const { agent } = await app.createAgent(id, meta)
      await app.say(agent, 'go')
      const [step] = app.barriers()
      expect(step).toMatchObject({ boundary: 'step', decision: applies ? 'skip' : 'flush', strategy: 'coalesced' })
      const shared = app.barriers().filter(({ sharedFlush }) => sharedFlush)
      expect(shared).toHaveLength(applies ? 1 : 0)
    })
  }

  test('an agent that is left out is guarded under selective too', async () => {
    const { app, ran } = await createUnder(
      selective,
      { tools: ['*'], subagents: 'only' },
      { policy: { allowUnguarded: true } },
    )
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    expect(ran).toEqual(ALL_ON_DISK)
  })
})

test('the strategies that need no config load without one', async () => {
  for (const plugin of [coalesced, pipelined]) {
    const { app } = await createUnder(plugin)
    expect(app.ctx.checkpoints.state().strategy).toBe(plugin === coalesced ? 'coalesced' : 'pipelined')
  }
})

describe('config mistakes', () => {
  const mistakes: [plugin: { readonly name: string }, config: unknown, message: RegExp][] = [
    [
      coalesced,
      { groupDelayMs: -1 },
      /coalesced: groupDelayMs must be a number of milliseconds from 0 to 1000, got -1/,
    ],
    [coalesced, { groupDelayMs: 'soon' }, /coalesced: groupDelayMs must be .*, got "soon"/],
    [coalesced, { subagents: true }, /coalesced: subagents must be "include", "exclude" or "only", got true/],
    [coalesced, { agents: 'main' }, /coalesced: agents must be a list of agent ids, presets or globs, got "main"/],
    [
      coalesced,
      { exceptAgents: [''] },
      /coalesced: exceptAgents must be a list of agent ids, presets or globs, got \[""\]/,
    ],
    [
      coalesced,
      { tools: ['read'] },
      /coalesced: tools is not a field; the fields are groupDelayMs, subagents, agents, exceptAgents/,
    ],
    [pipelined, { groupDelayMs: 5_000 }, /pipelined: groupDelayMs must be .* from 0 to 1000, got 5000/],
    [pipelined, [], /pipelined: config must be an object, got \[\]/],
    [selective, {}, /selective: tools must be a list of at least one tool name or glob, got \[\]/],
    [selective, { tools: [] }, /selective: tools must be a list of at least one tool name or glob, got \[\]/],
    [selective, { tools: 'read' }, /selective: tools must be a list of at least one tool name or glob, got "read"/],
    [selective, { tools: [3] }, /selective: tools must be a list of at least one tool name or glob, got \[3\]/],
  ]
  for (const [plugin, config, message] of mistakes) {
    test(`${plugin.name} with ${JSON.stringify(config)} does not load, and the default stays`, async () => {
      const { app } = await createUnder(undefined, undefined, { policy: { allowUnguarded: true } })
      await expect(app.mount(plugin, config)).rejects.toThrow(message)
      expect(app.ctx.checkpoints.state().strategy).toBe('default')
    })
  }
})
