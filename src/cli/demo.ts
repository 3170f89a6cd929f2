/** The demo: a real agent loop, real files, staged faults, a SIGKILL and its recovery; what it says, it has checked. */
import { extname, join } from 'node:path'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import type { RecoveredCall } from '../barrier.ts'
import { BarrierLog, type BarrierRow } from './barrier-log.ts'
import { Checklist, type Check } from './checklist.ts'
import { runCrash } from './demo-crash.ts'
import type { DemoOptions, DemoStage } from './demo-stage.ts'
import { runTurns, type TurnTimes } from './demo-turns.ts'
import { inRunFolder } from './run-folder.ts'
import { fatesOf, isContiguous, LogTail } from './session-log.ts'

/** What a run saw. JSON-safe. */
export interface DemoReport {
  /** Whether every guarantee was seen to hold. */
  readonly ok: boolean
  readonly checks: readonly Check[]
  readonly barriers: readonly BarrierRow[]
  readonly turns: TurnTimes
  readonly recovered: readonly RecoveredCall[]
  /** Folder of this run. */
  readonly dir: string
  readonly logs: readonly { readonly session: string; readonly path: string; readonly events: number }[]
  readonly durationMs: number
}

/** Run everything once. */
export async function runDemo(options: DemoOptions): Promise<DemoReport> {
  return inRunFolder(options.dir, (dir) => runIn(dir, options))
}

async function runIn(dir: string, options: DemoOptions): Promise<DemoReport> {
  const startedAt = performance.now()
  const stage: DemoStage = {
    options,
    policy: options.policy ?? new URL(`../index${extname(import.meta.url)}`, import.meta.url).href,
    dir,
    sessions: join(dir, 'sessions'),
    barriers: new BarrierLog(),
    checks: new Checklist(),
  }
  const { barriers, checks } = stage
  options.progress(`session logs, with fsync, go to ${stage.sessions}`)
  const live = await runTurns(stage)
  const crash = await runCrash(stage)
  const logs = [live, crash].map(({ session, path }) => ({ session, path, events: new LogTail(path).read() }))
  checks.add(
    'log',
    'Each log counts its events without a gap and holds one result for every call',
    Object.fromEntries(
      logs.flatMap(({ session, events }) => [
        [`${session} has contiguous seq`, events.length > 0 && isContiguous(events)],
        [`${session} has one result for every call`, hasOneResultEach(events)],
      ]),
    ),
    logs.map(({ session, events }) => `${session}: seq 0 to ${events.length - 1}`).join(', '),
  )
  return {
    ok: checks.ok,
    checks: checks.all,
    barriers: barriers.rows(),
    turns: live.times,
    recovered: barriers.recovered,
    dir,
    logs: logs
      .filter(({ path }) => path !== '')
      .map(({ session, path, events }) => ({ session, path, events: events.length })),
    durationMs: performance.now() - startedAt,
  }
}

function hasOneResultEach(events: readonly SessionEvent[]): boolean {
  const results = events.filter(({ type }) => type === 'tool/result').length
  const fates = fatesOf(events)
  return results === fates.length && fates.every(({ state }) => state === 'answered')
}
