/** The folder that a run of the demo keeps. */
import { mkdirSync, mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from './command.ts'
import { onInterrupt } from './interrupt.ts'

/**
 * Work in a folder of this run's own, which stays: the backend refuses a root that holds logs of another encoding. Whoever
 * stops the run is told where it is.
 * @param base - what `--dir` named; the system's temporary folder when absent.
 * @throws UsageError where none can be made.
 */
export async function inRunFolder<T>(base: string | undefined, work: (dir: string) => Promise<T>): Promise<T> {
  const dir = createRunFolder(base)
  // Nothing to wait for: it is a session on disk, and the process to be killed ends with this one.
  const ignore = onInterrupt((reason) => {
    process.stderr.write(`demo: ${reason.message}; what it wrote is kept in ${dir}\n`)
    process.exit(reason.exitCode)
  })
  try {
    return await work(dir)
  } finally {
    ignore()
  }
}

function createRunFolder(base: string | undefined): string {
  const [flag, parent, prefix] =
    base === undefined ? ['the temporary folder', tmpdir(), 'dsh-checkpoint-demo-'] : ['--dir', resolve(base), 'demo-']
  try {
    createFolder(parent)
    return mkdtempSync(join(parent, prefix))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new UsageError(`${flag}: ${parent} is not a folder`)
    throw new UsageError(`${flag}: no folder can be made in ${parent} (${code ?? String(error)})`)
  }
}

/**
 * Level by level. The recursive mode of Node never ends where a parent is there and takes no folder, as procfs does: its
 * ENOENT is taken for a missing parent.
 */
function createFolder(path: string): void {
  const missing: string[] = []
  let existing = path
  while (statSync(existing, { throwIfNoEntry: false }) === undefined && dirname(existing) !== existing) {
    missing.unshift(existing)
    existing = dirname(existing)
  }
  for (const folder of missing) {
    try {
      mkdirSync(folder)
    } catch (error) {
      // Another run may have been faster.
      if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
    }
  }
}
