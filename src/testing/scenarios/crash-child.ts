/** The process that is killed: turns without end, a slow disk, title requests, and a line on stdout as each body begins. */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import * as policy from '../../index.ts'
import { Disk } from '../disk.ts'
import { createHarness, createTool, MODEL, PROVIDER, ScriptedModel } from '../harness.ts'
import { importPlugin } from '../subject.ts'
import { createRandom } from '../wait.ts'

/** What the parent process asks for. */
export interface CrashPlan {
  readonly module: string
  readonly config: unknown
  readonly policy: object
  readonly exclusive: string
  readonly parallel: string
  readonly root: string
  readonly seed: number
}

/** Id of the only session. */
export const CRASH_SESSION = 'crash'

/** Longest time of an append and of a body. */
const MAX_APPEND_MS = 50
const MAX_BODY_MS = 10
/** A busy session: something else is recorded this often. */
const TRAFFIC_MS = 20
/** Far more than the parent lets happen: it ends a child whose parent died. */
const MAX_TURNS = 200

async function main(plan: CrashPlan): Promise<void> {
  const random = createRandom(plan.seed)
  const disk = new Disk()
  disk.door = () => sleep(random() * MAX_APPEND_MS)
  const body = (tool: string) => async (_args: unknown, exec: { readonly callId: string }) => {
    writeSync(1, `${disk.holdsCall(CRASH_SESSION, exec.callId) ? 'body' : 'early'} ${exec.callId} ${tool}\n`)
    await sleep(random() * MAX_BODY_MS)
  }
  const model = new ScriptedModel()
  const { exclusive, parallel } = plan
  const harness = await createHarness({
    root: plan.root,
    compression: 'none',
    persistence: disk.plugin,
    model,
    tools: [createTool(exclusive, body(exclusive)), createTool(parallel, body(parallel), { parallel: true })],
    plugins: [
      [policy, plan.policy],
      [await importPlugin(plan.module), plan.config],
    ],
  })
  const { agent } = await harness.createAgent(CRASH_SESSION)
  setInterval(() => agent.session.append('todo/write', { todos: [] }), TRAFFIC_MS).unref()
  const title = {
    provider: PROVIDER,
    model: MODEL,
    messages: [],
    sessionId: agent.session.id,
    purpose: 'session-title',
  }
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const calls = Array.from({ length: 8 }, () => ({ name: parallel }))
    model.replace([[{ name: exclusive }], calls, 'done'])
    if (turn % 2 === 1) void drain(harness.ctx.llm.stream(title as never))
    await harness.say(agent, 'go')
  }
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of stream) void chunk
}

const [, script, plan] = process.argv
if (script === import.meta.filename && plan !== undefined) await main(JSON.parse(plan) as CrashPlan)
