/** The folder a measuring command writes to, and its end: by itself, by an error, or by Ctrl-C. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { UsageError } from '../command.ts'

/** A temporary folder of this run. */
export interface Workspace {
  readonly dir: string
  /** Aborted by Ctrl-C and by a request to terminate. */
  readonly signal: AbortSignal
}

/** The run was stopped from outside; nothing of it is left. */
export class Interrupted extends Error {
  override name = 'Interrupted'
  /** As a shell reports it. */
  readonly exitCode: number

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`)
    this.exitCode = SIGNALS[signal as keyof typeof SIGNALS]
  }
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
/** How long the act under way may take to end after the signal. */
const GRACE_MS = 2_000

/**
 * Work in a temporary folder that is gone afterwards, whatever happens.
 * @param base - where to make it; the system's temporary folder when absent.
 * @throws UsageError where none can be made; {@link Interrupted} after a signal.
 */
export async function inWorkspace<T>(base: string | undefined, work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const dir = createFolder(base)
  const controller = new AbortController()
  let forced: NodeJS.Timeout | undefined
  const stop = (signal: NodeJS.Signals) => {
    const reason = new Interrupted(signal)
    const leave = () => {
      remove(dir)
      process.exit(reason.exitCode)
    }
    // Asked twice, or the act under way hangs.
    if (controller.signal.aborted) leave()
    forced = setTimeout(leave, GRACE_MS)
    controller.abort(reason)
  }
  const signals = Object.keys(SIGNALS) as NodeJS.Signals[]
  for (const signal of signals) process.on(signal, stop)
  try {
    const result = await work({ dir, signal: controller.signal })
    controller.signal.throwIfAborted()
    return result
  } catch (error) {
    // What fails after a signal fails because of it.
    throw controller.signal.aborted ? controller.signal.reason : error
  } finally {
    clearTimeout(forced)
    for (const signal of signals) process.off(signal, stop)
    remove(dir)
  }
}

function createFolder(base: string | undefined): string {
  const parent = resolve(base ?? tmpdir())
  const flag = base === undefined ? 'the temporary folder' : '--dir'
  const there = statSync(parent, { throwIfNoEntry: false })
  if (there === undefined) throw new UsageError(`${flag}: there is no folder ${parent}`)
  if (!there.isDirectory()) throw new UsageError(`${flag}: ${parent} is not a folder`)
  try {
    return mkdtempSync(join(parent, 'dsh-checkpoint-bench-'))
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new UsageError(
      `${flag}: nothing can be written in ${parent} (${code}); name a folder on the disk to be measured with --dir`,
    )
  }
}

/** A write that was under way may put a file back while the folder goes: hence the repetition. */
function remove(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
}
