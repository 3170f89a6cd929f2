/** `demo --resume`: what crash recovery answers to the calls of somebody's own log, tried on a copy. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { createHarness, type Harness } from '../testing/harness.ts'
import { BarrierLog } from './barrier-log.ts'
import { Checklist, type Check } from './checklist.ts'
import { UsageError } from './command.ts'
import { within } from './demo-stage.ts'
import { isBalanced, RECOVERY_OF, withAnswers, type ResumedCall } from './resumed-calls.ts'
import { inRunFolder } from './run-folder.ts'
import { readSessionFile, type SessionFile } from './session-file.ts'
import { fatesOf, isContiguous, type CallFate } from './session-log.ts'

const FLAG = '--resume'
/** What became of a log. JSON-safe. */
export interface ResumeReport {
  /** Whether the session can go on, and everything checked held. */
  readonly ok: boolean
  readonly sessionId: string
  readonly source: string
  /** The copy that was resumed, or was not. */
  readonly copy: string
  readonly events: number
  /** Calls with a result from their tool. */
  readonly answeredCalls: number
  readonly calls: readonly ResumedCall[]
  /** Whether the session was resumed and took a turn with a scripted model. */
  readonly resumed: boolean
  readonly checks: readonly Check[]
}

/** How to resume. */
export interface ResumeOptions {
  readonly file: string
  readonly dir?: string
  readonly progress: (line: string) => void
}

/** Try a log: never the original, and nothing leaves the machine. */
export async function resumeLog(options: ResumeOptions): Promise<ResumeReport> {
  const file = readSessionFile(FLAG, options.file)
  return inRunFolder(options.dir, (dir) => resumeIn(join(dir, 'sessions'), file, options.progress))
}

async function resumeIn(root: string, file: SessionFile, progress: ResumeOptions['progress']): Promise<ResumeReport> {
  const policy = (await import(new URL(`../index${extname(import.meta.url)}`, import.meta.url).href)) as object
  const harness = await createHarness({ root, compression: file.compression, plugins: [[policy, {}]] })
  try {
    const copy = place(harness, file)
    progress(`copied ${file.path} to ${copy}`)
    const events = await readEvents(harness, file)
    const fates = fatesOf(events)
    const checks = new Checklist()
    const resumed = !fates.some(({ state }) => state === 'unresolved')
    const calls = resumed
      ? await resume(harness, file, fates, checks, progress)
      : await leave(harness, file, fates, copy, checks)
    checks.add(
      'original',
      'The original file is as it was',
      { 'its bytes are the same': readFileSync(file.path).equals(file.bytes) },
      'same bytes',
    )
    const answeredCalls = fates.filter(
      (fate) => fate.state === 'answered' && RECOVERY_OF[fate.code ?? ''] === undefined,
    ).length
    return {
      ok: resumed && checks.ok,
      sessionId: file.header.id,
      source: file.path,
      copy,
      events: events.length,
      answeredCalls,
      calls,
      resumed,
      checks: checks.all,
    }
  } finally {
    await within('unloading', harness.dispose())
  }
}

/** Put the copy where the backend looks for it. */
function place({ ctx }: Harness, file: SessionFile): string {
  const copy = ctx.sessionPersistence.locate(file.header)?.path
  if (copy === undefined) throw new Error('the persistence backend names no file for a session')
  mkdirSync(dirname(copy), { recursive: true })
  writeFileSync(copy, file.bytes)
  return copy
}

/** The stored events, without any repair. */
async function readEvents({ ctx }: Harness, file: SessionFile): Promise<readonly SessionEvent[]> {
  try {
    return (await ctx.sessionPersistence.readFrom(file.header.id, 0)).events
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** The events as recovery would leave them, with every check of the host; nothing is written. */
async function inspect({ ctx }: Harness, file: SessionFile): Promise<readonly SessionEvent[]> {
  try {
    return (await ctx.sessionPersistence.inspect(file.header.id)).events
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: SessionFile, error: unknown): UsageError {
  return new UsageError(`${FLAG}: ${file.path} cannot be read as a session log: ${(error as Error).message}`)
}

/** Resume the copy and take a turn. */
async function resume(
  harness: Harness,
  file: SessionFile,
  fates: readonly CallFate[],
  checks: Checklist,
  progress: (line: string) => void,
): Promise<readonly ResumedCall[]> {
  const told = new BarrierLog()
  told.listen(harness.ctx.get('checkpoints'))
  await inspect(harness, file)
  const { agent } = await harness.resumeAgent(file.header.id)
  const balanced = isBalanced(agent.session.deriveMessages())
  progress(
    balanced
      ? 'resumed; taking a turn with a scripted model'
      : 'resumed; its history is not balanced, so no model is asked',
  )
  if (balanced) await within('the turn after the resume', harness.say(agent, 'go on'))
  await within('a flush', harness.ctx.sessions.flush(agent.session))
  const { events } = await harness.ctx.sessionPersistence.readFrom(file.header.id, 0)
  const open = fates.filter(({ state }) => state === 'open')
  const calls = withAnswers(fates, fatesOf(events), 'now')
  const now = calls.filter(({ state }) => state === 'now')
  checks.add(
    'answers',
    'Every call that a crash left open is answered once, and the policy tells of it',
    {
      'each has an answer of recovery':
        now.length === open.length && now.every(({ answer = '' }) => answer in RECOVERY_OF),
      'the policy told the same':
        told.recovered.length === now.length &&
        now.every(({ callId, answer = '' }) =>
          told.recovered.some((call) => call.callId === callId && call.recovery === RECOVERY_OF[answer]),
        ),
    },
    now.length === 0 ? 'none was open' : `${now.length} answered`,
  )
  checks.add(
    'turn',
    'The session takes another turn, with a history in which every call has a result',
    {
      'every call of the history has its result': balanced,
      'the turn completed': events.findLast((event) => event.type === 'turn/end')?.data.reason?.kind === 'completed',
      'seq is contiguous': isContiguous(events),
    },
    `seq 0 to ${events.length - 1}`,
  )
  return calls
}

/** A step was closed over a call without a result: no model gets this history, and no result is invented. */
async function leave(
  harness: Harness,
  file: SessionFile,
  fates: readonly CallFate[],
  copy: string,
  checks: Checklist,
): Promise<readonly ResumedCall[]> {
  // A host that refuses such a log has nothing to say about its open calls; the unresolved one is named all the same.
  const events = await inspect(harness, file).catch(() => [])
  checks.add(
    'copy',
    'Nothing is appended to a log with an unresolved call',
    { 'the copy is as it was': readFileSync(copy).equals(file.bytes) },
    'same bytes',
  )
  return withAnswers(fates, fatesOf(events), 'withheld')
}
