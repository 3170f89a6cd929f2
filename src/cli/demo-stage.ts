/** What the demo's scenarios share: options, folders, the checklist. */
import type { BarrierLog } from './barrier-log.ts'
import type { Checklist } from './checklist.ts'

/** How the demo runs. */
export interface DemoOptions {
  /** Ordinary turns before the staged faults. */
  readonly turns: number
  /** Concurrency-safe calls in one message. */
  readonly parallel: number
  /** Folder that keeps the logs; a temporary one when absent. */
  readonly dir?: string
  /** Receives a line whenever something was done. */
  readonly progress: (line: string) => void
  /** URL of the policy's module; this package's own when absent. With one that does not wait, the checks fail. */
  readonly policy?: string
}

/** One run of the demo, as its scenarios see it. */
export interface DemoStage {
  readonly options: DemoOptions
  /** URL of the policy's module. */
  readonly policy: string
  /** Folder of this run. */
  readonly dir: string
  /** Root of the persistence backend. */
  readonly sessions: string
  readonly barriers: BarrierLog
  readonly checks: Checklist
}

/** Longest single act: a hang then ends as a failure that names the act. */
const ACT_LIMIT_MS = 10_000

/**
 * Wait for one act, within a limit.
 * @param what - the act, for the message.
 */
export async function within<T>(what: string, act: Promise<T>): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => limit.reject(new Error(`${what} did not end within ${ACT_LIMIT_MS / 1_000} s`)),
    ACT_LIMIT_MS,
  )
  try {
    return await Promise.race([act, limit.promise])
  } finally {
    clearTimeout(timer)
  }
}
