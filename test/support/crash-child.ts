/**
 * A process to be killed: `node crash-child.ts ROOT POINT`.
 *
 * It prints `at POINT` when it is there and stays there. Points: `request` (adapter called), `tool` (body entered),
 * `before-tool` (the call recorded, its barrier not yet begun), `parallel` (eight bodies, each of
 * which first looks for its own call on disk and dies if it is not there).
 */
import { writeSync } from 'node:fs'
import type { Context } from '@deepseek-ai/cordis'
import * as policy from '../../src/index.ts'
import { createHarness, createTool, ScriptedModel } from '../../src/testing/harness.ts'
import { isOnDisk } from './log.ts'

const [root = '', point = '', index = '0'] = process.argv.slice(2)
const hang = () => new Promise<never>(() => {})
/** Synchronous, so that the word is out before anything else happens. */
const reach = (what: string) => {
  if (what !== point) return undefined
  writeSync(1, `at ${what}\n`)
  return hang()
}

// Keeps the process alive while everything hangs.
setInterval(() => {}, 60_000)
const faults = {
  name: 'faults',
  apply(ctx: Context) {
    ctx.on('tools/pre-execute', async (_exec, next) => (await reach('before-tool')) ?? next())
    if (point === 'parallel')
      ctx.on('session/flush', () => new Promise((resolve) => setTimeout(resolve, Math.random() * 50)))
  },
}
const parallel = Array.from({ length: 8 }, (_, call) => ({ name: 'read', id: `call-${call}` }))
const model = new ScriptedModel([
  point === 'parallel'
    ? parallel
    : [
        { name: 'write', id: 'call-a' },
        { name: 'write', id: 'call-b' },
      ],
])
model.onRequest = () => {
  if (point === 'request') writeSync(1, 'at request\n')
}
const harness = await createHarness({
  root,
  compression: 'none',
  writeBatchMaxDelayMs: 60_000,
  model,
  plugins: [[faults], [policy, {}]],
  tools: [
    createTool('write', () => reach('tool') ?? 'ok'),
    createTool(
      'read',
      (_args, exec) => {
        if (!isOnDisk(root, exec.callId)) writeSync(1, `MISSING ${exec.callId}\n`)
        return exec.callId === `call-${index}` ? reach('parallel') : hang()
      },
      { parallel: true },
    ),
  ],
})
const { agent } = await harness.createAgent('victim')
if (point === 'request') {
  const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
  agent.session.append('turn/start', { turn: 1 })
  for await (const chunk of harness.ctx.llm.stream(request)) {
    void chunk
    await hang()
  }
} else {
  await harness.say(agent, 'hi')
}
