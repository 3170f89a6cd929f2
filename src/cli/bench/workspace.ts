/** The folder a measuring command writes to, and its end: by itself, by an error, or by Ctrl-C. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { UsageError } from '../command.ts'
import { interruptible } from '../interrupt.ts'

/** A temporary folder of this run. */
export interface Workspace {
  readonly dir: string
  /** Aborted by Ctrl-C and by a request to terminate. */
  readonly signal: AbortSignal
}

/**
 * Work in a temporary folder that is gone afterwards, whatever happens.
 * @param base - where to make it; the system's temporary folder when absent.
 * @throws UsageError where none can be made; Interrupted after a signal.
 */
export async function inWorkspace<T>(base: string | undefined, work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const dir = createFolder(base)
  return interruptible(
    () => remove(dir),
    (signal) => work({ dir, signal }),
  )
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
