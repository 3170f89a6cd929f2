import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as policy from '../src/index.ts'
import coalesced from '../src/strategies/coalesced.ts'
import pipelined from '../src/strategies/pipelined.ts'
import { Disk } from '../src/testing/disk.ts'
import { createHarness, createTool, ScriptedModel, type ScriptedAnswer } from '../src/testing/harness.ts'

const STEPS = 20
const GUARDS = ['none', 'synchronous', 'asynchronous'] as const
type Guard = (typeof GUARDS)[number]

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'strategies-'))
})
afterEach(() => rm(root, { recursive: true }))

/** Appends of one turn of 20 requests, from turn/start to turn/end. */
async function countAppends(strategy: object | undefined, parallelCalls: number, guard: Guard): Promise<number> {
  const disk = new Disk()
  const answers: ScriptedAnswer[] = []
  for (let step = 1; step < STEPS; step += 1)
    answers.push(Array.from({ length: parallelCalls }, () => ({ name: 'read' })))
  const harness = await createHarness({
    root,
    compression: 'none',
    persistence: disk.plugin,
    // Neither a timer of the backend nor a stall of the machine may add or save an append.
    writeBatchMaxDelayMs: 600_000,
    model: new ScriptedModel(answers),
    tools: [createTool('read', () => 'ok', { parallel: true })],
    plugins: [[policy, {}], ...(strategy === undefined ? [] : [[strategy, { groupDelayMs: 1_000 }] as const])],
  })
  if (guard === 'synchronous') harness.ctx.tools.guard(() => undefined)
  if (guard === 'asynchronous') {
    harness.ctx.on('tools/pre-execute', async (_exec, next) => {
      // Several turns of the event loop, as a guard that asks a file or another process takes.
      for (let turn = 0; turn < 3; turn += 1) await immediate()
      return next()
    })
  }
  let appends = -1
  harness.ctx.on('session/event', (_session, event) => {
    if (event.type === 'turn/start') appends = -disk.written
    if (event.type === 'turn/end') appends += disk.written
  })
  const { agent } = await harness.createAgent()
  // A new session first looks for its file; a write begun during that look-up also takes what is appended meanwhile.
  await harness.ctx.sessions.flush(agent.session)
  await harness.say(agent, 'go')
  expect(harness.model.requests).toHaveLength(STEPS)
  await harness.dispose()
  return appends
}

describe('appends of 20 steps on JSONL, from turn/start to turn/end', () => {
  const counts = [
    { strategy: 'default', plugin: undefined, one: 59, four: 78 },
    { strategy: 'coalesced', plugin: coalesced, one: 39, four: 39 },
    { strategy: 'pipelined', plugin: pipelined, one: 59, four: 59 },
  ]
  for (const { strategy, plugin, one, four } of counts) {
    for (const guard of GUARDS) {
      const guarded = `${strategy} with ${guard === 'none' ? 'no' : guard} guards`
      it(`${guarded} writes ${one} times for one call per step`, async () => {
        expect(await countAppends(plugin, 1, guard)).toBe(one)
      })
      // Without a group, calls that come turns of the event loop apart share a write only by chance.
      if (plugin === undefined && guard === 'asynchronous') continue
      it(`${guarded} writes ${four} times for four parallel calls per step`, async () => {
        expect(await countAppends(plugin, 4, guard)).toBe(four)
      })
    }
  }
})
