import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isContiguous } from '../src/cli/session-log.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, tempFolder } from './support/app.ts'
import { isOnDisk } from './support/log.ts'
import { callsOf, findLog, readOutside } from './sweep/outside.ts'
import { SESSION } from './sweep/plan.ts'
import { SUBJECTS } from './sweep/rounds.ts'
import type { TrafficPlan } from './sweep/traffic-child.ts'

const CHILD = fileURLToPath(new URL('./sweep/traffic-child.ts', import.meta.url))
/** Of the traffic, in milliseconds; 9 s in the nightly run. The call comes after a third of it. */
const KILL_AT_MS = Number(process.env['DSH_CHECKPOINT_TRAFFIC_MS'] ?? 1_500)
/** Write-behind of the backend, and what a busy machine adds to it. */
const WINDOW_MS = 200 + 400

interface Line {
  readonly seq?: number
  readonly at?: number
  readonly body?: string
  readonly barrier?: string
  readonly waitedMs?: number
  readonly unguarded?: boolean
  readonly turn?: string
}

/** Let the traffic flow, and kill it in the middle. */
async function killInTraffic(plan: TrafficPlan): Promise<{ lines: Line[]; killedAt: number }> {
  const child = spawn(process.execPath, [CHILD, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines: Line[] = []
  let killedAt = 0
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Line
    lines.push(line)
    const first = lines.find(({ at }) => at !== undefined)?.at ?? Infinity
    if (killedAt === 0 && line.at !== undefined && line.at - first >= KILL_AT_MS) {
      killedAt = line.at
      child.kill('SIGKILL')
    }
  }
  await exited
  return { lines, killedAt }
}

test.each(SUBJECTS)(
  'D08: under $name steady traffic delays no barrier, and a kill in its midst loses no more than the write-behind of the backend',
  { timeout: 20_000 + KILL_AT_MS },
  async ({ strategy, policy }) => {
    const root = tempFolder()
    const { lines, killedAt } = await killInTraffic({ root, strategy, policy, callAtMs: KILL_AT_MS / 3 })
    expect(lines).toContainEqual({ body: 'amid-traffic' })
    expect(lines).toContainEqual({ turn: 'over' })
    const barriers = lines.filter(({ barrier }) => barrier !== undefined)
    expect(barriers.filter(({ waitedMs = 0, unguarded }) => waitedMs > 1_000 || unguarded === true)).toEqual([])
    const { events } = readOutside(findLog(root, SESSION) ?? '')
    expect(isContiguous(events)).toBe(true)
    expect(callsOf(events)).toContain('amid-traffic')
    const lost = lines.filter(
      ({ seq, at = 0 }) => seq !== undefined && seq >= events.length && at < killedAt - WINDOW_MS,
    )
    expect(lost).toEqual([])
  },
)

test('D08: a strategy that answers "done" without a flush is overruled and named; the call is on disk before its body', async () => {
  const seen: boolean[] = []
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-1' }]]),
    tools: [createTool('write', (_args, exec) => void seen.push(isOnDisk(app.root, exec.callId)))],
  })
  await app.mount({
    name: 'done-already',
    apply: (ctx: typeof app.ctx) =>
      void ctx.provide('checkpointStrategy', {
        name: 'done-already',
        decide: () => ({ kind: 'skip', reason: 'done' }),
      }),
  })
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  expect(seen).toEqual([true])
  const guarded = app.barriers().filter((record) => record.guarded)
  expect(guarded.map(({ overruled, flushOutcome, unguarded }) => [overruled, flushOutcome, unguarded])).toEqual(
    Array.from({ length: 3 }, () => ['guarded', 'durable', false]),
  )
  expect(app.logs.join('\n')).toMatch(
    /strategy "done-already" asked to skip at request: flushing, as allowUnguarded is not set/,
  )
})
