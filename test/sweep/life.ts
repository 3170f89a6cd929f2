/**
 * The process that is killed: an agent's life from its first turn to its end. Turns with single, parallel and delegated
 * calls and a title request, a strategy swap during a turn, a reload of the policy during a body, the end of the application.
 * Started as `node --import storage-points.ts life.ts PLAN`; it prints its points as JSON when nothing killed it.
 */
import { writeSync } from 'node:fs'
import type { Fiber } from '@deepseek-ai/cordis'
import { createHarness, createTool, MODEL, PROVIDER, type ScriptedCall } from '../../src/testing/harness.ts'
import * as ours from '../../src/index.ts'
import { innerHooks, outerHooks } from './hook-points.ts'
import { LifeModel } from './life-model.ts'
import { SESSION, type Plan } from './plan.ts'
import { aim, passes, reach } from './points.ts'
import { SideFile } from './side-file.ts'

const plan = JSON.parse(process.argv[2] ?? '{}') as Plan
const side = new SideFile(plan)
const model = new LifeModel(side)
let heldBody: (() => Promise<void>) | undefined
let subagents = 0
let ended: Promise<void> | undefined

async function body(exec: { readonly callId: string }, tool: string): Promise<void> {
  reach('body:begin')
  side.effect(exec.callId, tool)
  reach('body:effect')
  const held = heldBody
  heldBody = undefined
  if (held !== undefined) await held()
  else await new Promise(setImmediate)
  reach('body:end')
}

const policy = plan.policyModule === undefined ? ours : ((await import(plan.policyModule)) as object)
const strategy =
  plan.strategy === undefined ? undefined : ((await import(plan.strategy.module)) as { default: object }).default
const harness = await createHarness({
  root: plan.root,
  compression: plan.compression,
  writeBatchMaxDelayMs: 5,
  model,
  plugins: [
    [outerHooks(side, plan.policyModule !== undefined)],
    [policy, plan.policy],
    ...(strategy === undefined ? [] : [[strategy, plan.strategy?.config] as const]),
  ],
  tools: [
    createTool('write', (_args, exec) => body(exec, 'write')),
    createTool('read', (_args, exec) => body(exec, 'read'), { parallel: true }),
    createTool('delegate', async (_args, exec) => {
      await body(exec, 'delegate')
      const helper = await harness.createAgent(`${SESSION}-${plan.life}-${(subagents += 1)}`, { delegationDepth: 1 })
      model.script(helper.agent.session.id, [calls('sub', 'write'), 'sub done'])
      await harness.say(helper.agent, 'help')
      await helper.dispose()
    }),
  ],
})
const policyFibers = { policy: harness.plugins[1] as Fiber, strategy: harness.plugins[2] }
// After the policy, so inside it: these see what it released. They are mounted again with it.
let inner = await harness.mount(innerHooks())
const title = { provider: PROVIDER, model: MODEL, messages: [], sessionId: SESSION, purpose: 'session-title' }

aim(plan.target)
const { agent } = plan.resume === true ? await harness.resumeAgent(SESSION) : await harness.createAgent(SESSION)
reach('born')
await Promise.all([
  turn([
    calls('t1', 'write'),
    calls('t1', ...Array.from({ length: 8 }, () => 'read')),
    calls('t1', 'delegate', 'write'),
    'done',
  ]),
  drainTitle(),
])
await Promise.all([turn([calls('t2', 'write'), calls('t2', 'read', 'read', 'read'), 'done']), swapStrategy()])
heldBody = reloadPolicy
await turn([calls('t3', 'write', 'write'), calls('t3', 'read', 'read'), 'done'])
heldBody = endApplication
await turn([calls('t4', 'read', 'write'), 'done']).catch(() => {})
await ended
writeSync(1, `points ${JSON.stringify(passes())}\n`)
process.exit(0)

async function turn(answers: Parameters<LifeModel['script']>[1]): Promise<void> {
  model.script(SESSION, answers)
  await harness.say(agent, 'go')
  reach('idle')
}

async function drainTitle(): Promise<void> {
  for await (const chunk of harness.ctx.llm.stream(title as never)) void chunk
}

async function swapStrategy(): Promise<void> {
  if (strategy === undefined) return
  reach('swap:before')
  await policyFibers.strategy?.dispose()
  reach('swap:unmounted')
  policyFibers.strategy = await harness.mount(strategy, plan.strategy?.config)
  reach('swap:mounted')
}

async function reloadPolicy(): Promise<void> {
  reach('reload:before')
  await inner.dispose()
  const gone = policyFibers.policy.dispose()
  reach('reload:unloading')
  await gone
  reach('reload:unloaded')
  policyFibers.policy = await harness.mount(policy, plan.policy)
  inner = await harness.mount(innerHooks())
  reach('reload:mounted')
}

async function endApplication(): Promise<void> {
  reach('dispose:before')
  // Not awaited in this body: the end of the application waits for the turn that it belongs to.
  ended = harness.dispose().then(() => reach('dispose:ended'))
  reach('dispose:begun')
}

function calls(turnName: string, ...names: readonly string[]): ScriptedCall[] {
  return names.map((name, index) => ({ name, id: `${plan.life}-${turnName}-${name}-${index}-${subagents}` }))
}
