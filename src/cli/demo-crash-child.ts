/**
 * The process that the demo kills. It takes one turn, then enters a tool body whose effect begins and never ends.
 * Started with one argument, a {@link CrashOrder} as JSON.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createHarness, createTool } from '../testing/harness.ts'

/** What the killed process is told. */
export interface CrashOrder {
  /** Root of the persistence backend. */
  readonly root: string
  readonly sessionId: string
  /** Call that is killed. */
  readonly callId: string
  /** File that the effect writes to. */
  readonly effect: string
  /** URL of the policy's module. */
  readonly policy: string
}

const { root, sessionId, callId, effect, policy } = JSON.parse(process.argv[2] ?? '{}') as CrashOrder

// Not an orphan: when the demo itself is killed, its end of the pipe closes.
process.stdin.on('end', () => process.exit(1)).resume()

const harness = await createHarness({
  root,
  compression: 'none',
  tools: [
    createTool('write', () => 'ok'),
    createTool('charge', async (_args, exec) => {
      const file = openSync(effect, 'a')
      writeSync(file, `begun ${exec.callId}\n`)
      fsyncSync(file)
      closeSync(file)
      await new Promise(() => {})
    }),
  ],
  plugins: [[(await import(policy)) as object, {}]],
})
const { agent } = await harness.createAgent(sessionId)
harness.model.push([{ name: 'write', id: 'before-the-crash' }], 'done', [{ name: 'charge', id: callId }])
await harness.say(agent, 'write')
await harness.say(agent, 'charge the card')
