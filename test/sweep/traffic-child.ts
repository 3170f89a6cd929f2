/** An agent whose session never falls silent: an event every 20 ms, a turn with a call in between. It is killed by its parent. */
import { writeSync } from 'node:fs'
import * as policy from '../../src/index.ts'
import { createHarness, createTool } from '../../src/testing/harness.ts'
import { SESSION } from './plan.ts'

/** What the child is told. */
export interface TrafficPlan {
  readonly root: string
  readonly strategy?: { readonly module: string; readonly config: object }
  readonly policy: object
  /** When the turn begins, in milliseconds. */
  readonly callAtMs: number
}

const EVERY_MS = 20
const plan = JSON.parse(process.argv[2] ?? '{}') as TrafficPlan
const say = (line: object) => void writeSync(1, `${JSON.stringify(line)}\n`)
const strategy =
  plan.strategy === undefined ? undefined : ((await import(plan.strategy.module)) as { default: object }).default
const harness = await createHarness({
  root: plan.root,
  compression: 'none',
  tools: [createTool('write', (_args, exec) => say({ body: exec.callId }))],
  plugins: [[policy, plan.policy], ...(strategy === undefined ? [] : [[strategy, plan.strategy?.config] as const])],
})
harness.ctx.checkpoints.observe((record) => {
  if (record.kind === 'barrier')
    say({ barrier: record.boundary, waitedMs: record.durationMs, unguarded: record.unguarded })
})
const { agent } = await harness.createAgent(SESSION)
harness.model.push([{ name: 'write', id: 'amid-traffic' }], 'done')
const append = agent.session.append.bind(agent.session) as (type: string, data: object) => { seq: number }
setInterval(() => {
  const { seq } = append('session/title', { title: 'another one' })
  say({ seq, at: Date.now() })
}, EVERY_MS)
setTimeout(() => void harness.say(agent, 'go').then(() => say({ turn: 'over' })), plan.callAtMs)
