/**
 * A host process with the policy and the SDK plugin, for tests of how it ends. Prints one line per step.
 *
 * Arguments: folder of the session logs, `signal` or `plain`, configuration of the SDK plugin as JSON.
 * `signal`: waits for SIGTERM, lets its last session flush take a while, unloads everything and ends with code 7; a second
 * SIGTERM ends it at once with code 9. `plain`: says one thing and ends by itself, without unloading anything.
 */
import type { Context } from '@deepseek-ai/cordis'
import * as policy from '../../src/index.ts'
import * as nodeSdk from '../../src/node-sdk.ts'
import { createHarness, ScriptedModel, textChunks } from '../../src/testing/harness.ts'

const [root = '', mode = '', config = '{}'] = process.argv.slice(2)
const SLOW_FLUSH_MS = 1_000

let flushMs = 0
const control = {
  name: 'child-control',
  apply(ctx: Context) {
    ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => console.log('log', ...args.map(String)) })
    ctx.on('session/flush', () => new Promise<void>((resolve) => void setTimeout(resolve, flushMs)))
  },
}
const harness = await createHarness({
  root,
  compression: 'none',
  plugins: [[control], [policy, { turnBoundary: false }], [nodeSdk, JSON.parse(config)]],
  model: new ScriptedModel([() => textChunks('first answer'), () => textChunks('last answer')]),
})
const { agent } = await harness.createAgent('child')
await harness.say(agent, 'hi')
console.log('said')

// Long enough for an export of metrics to be under way.
if (mode === 'plain') await new Promise((resolve) => void setTimeout(resolve, 1_200))
if (mode === 'signal') {
  let signals = 0
  process.on('SIGTERM', () => {
    signals += 1
    if (signals === 1) void end()
    else process.exit(9)
  })
  // The host of a real agent has a server or a terminal that keeps it alive.
  const alive = setInterval(() => {}, 1_000)
  const end = async () => {
    console.log('ending')
    await harness.say(agent, 'one more')
    flushMs = SLOW_FLUSH_MS
    await harness.ctx.sessions.flush(agent.session)
    console.log('flushed')
    const from = performance.now()
    await harness.dispose()
    console.log(`unloaded ${Math.round(performance.now() - from)}`)
    process.exitCode = 7
    clearInterval(alive)
  }
  console.log('ready')
}
