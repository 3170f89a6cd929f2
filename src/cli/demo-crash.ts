/** The second half of the demo: a process killed in the middle of a side effect, and its session resumed elsewhere. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createHarness, createTool, type Harness } from '../testing/harness.ts'
import type { CrashOrder } from './demo-crash-child.ts'
import { within, type DemoStage } from './demo-stage.ts'
import { fatesOf, LogTail } from './session-log.ts'

const SESSION_ID = 'demo-crash'
const CALL_ID = 'charge-the-card'
/** Code of recovery's answer to a call that was recorded and has no result. */
const UNKNOWN = 'TOOL_OUTCOME_UNKNOWN'
const POLL_MS = 10
/** What is kept of the killed process' stderr, for a failure that explains itself. */
const MAX_STDERR = 4_096

/** Run this half. */
export async function runCrash(stage: DemoStage): Promise<{ session: string; path: string }> {
  const { options, checks, barriers } = stage
  const effect = join(stage.dir, 'effect.txt')
  await killInEffect({ root: stage.sessions, sessionId: SESSION_ID, callId: CALL_ID, effect, policy: stage.policy })
  options.progress('a process was killed (SIGKILL) in the middle of a tool call')
  const policy = (await import(stage.policy)) as object
  let bodies = 0
  const charge = createTool('charge', () => {
    bodies += 1
  })
  const harness = await createHarness({
    root: stage.sessions,
    compression: 'none',
    tools: [charge],
    plugins: [[policy, {}]],
  })
  try {
    const path = await findLog(harness)
    const { before, calls } = readBefore(path)
    barriers.listen(harness.ctx.get('checkpoints'))
    let told = false
    harness.model.onRequest = (request) => {
      told = JSON.stringify(request.messages).includes(CALL_ID)
    }
    harness.model.push('I will look before I charge again.')
    if (path !== '') await takeTurn(harness)
    const events = new LogTail(path).read()
    const answer = fatesOf(events).find((fate) => fate.callId === CALL_ID)?.code
    const recovered = barriers.recovered.filter((call) => call.callId === CALL_ID)
    options.progress(`its session, resumed in another process: the killed call is answered ${answer ?? 'by nothing'}`)
    checks.add(
      'crash',
      `A call killed in its effect is on disk, recovered as ${UNKNOWN}, and not run again`,
      {
        'its call was on disk': calls.has(CALL_ID),
        'it had no result': before?.state === 'open',
        [`recovery answered ${UNKNOWN}`]: answer === UNKNOWN,
        'the policy told of it once': recovered.length === 1 && recovered[0]?.recovery === 'unknown',
        'its effect was not begun again': bodies === 0 && readFileSync(effect, 'utf8') === `begun ${CALL_ID}\n`,
        'the model saw the answer': told,
        'the next turn completed':
          events.findLast((event) => event.type === 'turn/end')?.data.reason?.kind === 'completed',
      },
      `${CALL_ID}: effect begun once, next turn completed`,
    )
    return { session: SESSION_ID, path }
  } finally {
    await within('unloading', harness.dispose())
  }
}

/** What the killed process left on disk. */
function readBefore(path: string) {
  const log = new LogTail(path)
  const before = fatesOf(log.read()).find((fate) => fate.callId === CALL_ID)
  return { before, calls: log.calls }
}

async function takeTurn(harness: Harness): Promise<void> {
  const { agent } = await harness.resumeAgent(SESSION_ID)
  await within('the turn after the crash', harness.say(agent, 'go on'))
  await within('a flush', harness.ctx.sessions.flush(agent.session))
}

/** Start the process and kill it as soon as its effect has left a trace. */
async function killInEffect(order: CrashOrder): Promise<void> {
  const script = fileURLToPath(new URL(`./demo-crash-child${extname(import.meta.url)}`, import.meta.url))
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { stdio: ['pipe', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-MAX_STDERR)
  })
  const ended = once(child, 'exit')
  try {
    await within('the side effect of the process to be killed', effectOf(order, child))
  } catch (error) {
    throw new Error(`${(error as Error).message}${stderr === '' ? '' : `:\n${stderr}`}`, { cause: error })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

/** Resolves when the effect is on disk: content is waited for, never time. */
async function effectOf({ effect, callId }: CrashOrder, child: ChildProcess): Promise<void> {
  while (!readIfThere(effect).includes(`begun ${callId}\n`)) {
    if (child.exitCode !== null)
      throw new Error(`the process to be killed ended by itself, with code ${child.exitCode}`)
    await delay(POLL_MS)
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** The log of the killed process; empty where it left none. */
async function findLog({ ctx }: Harness): Promise<string> {
  const header = (await ctx.sessionPersistence.list()).find(({ id }) => id === SESSION_ID)
  return header === undefined ? '' : (ctx.sessionPersistence.locate(header)?.path ?? '')
}
