/** The logs a person named: files, and what folders hold. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../command.ts'
import { statInput, UnreadableInput } from '../input-file.ts'
import { readLog, UnreadableLog, type RecordedLog } from './log.ts'
import { extractShape } from './extract.ts'
import type { LogShape } from './shape.ts'

/** Names the JSONL backend gives its logs. */
const LOG_NAMES = new Set(['session.jsonl', 'session.jsonl.zstd'])
/** Most logs read in one run. */
const MAX_LOGS = 200
const MAX_DEPTH = 8

/** One log that can be replayed. */
interface UsableLog extends LogShape, Pick<RecordedLog, 'version' | 'encoding' | 'torn'> {
  readonly path: string
}

/** What was found. */
export interface FoundLogs {
  readonly logs: readonly UsableLog[]
  /** What was left out, and why. */
  readonly skipped: readonly { readonly path: string; readonly why: string }[]
}

/**
 * Find and read logs.
 * @throws UsageError when a path is not there, or nothing can be replayed.
 */
export function findLogs(paths: readonly string[]): FoundLogs {
  const files = [...new Set(paths.flatMap(expand))]
  const logs: UsableLog[] = []
  const skipped: { path: string; why: string }[] = []
  for (const path of files) {
    if (logs.length >= MAX_LOGS) {
      skipped.push({ path, why: `more than ${MAX_LOGS} logs` })
      continue
    }
    try {
      const { rows, version, encoding, torn } = readLog(path)
      const shape = extractShape(rows)
      if (shape.turns.length > 0) logs.push({ path, version, encoding, torn, ...shape })
      else
        skipped.push({
          path,
          why: `no finished turn in it${shape.unfinished > 0 ? ` (${shape.unfinished} cancelled, failed or cut off)` : ''}`,
        })
    } catch (error) {
      if (!(error instanceof UnreadableLog)) throw error
      skipped.push({ path, why: error.message })
    }
  }
  if (logs.length === 0)
    throw new UsageError(`tune: nothing to replay\n${skipped.map(({ path, why }) => `  ${path}: ${why}`).join('\n')}`)
  return { logs, skipped }
}

function expand(path: string): string[] {
  if (!isFolder(path)) return [path]
  const found = search(path, 0)
  if (found.length === 0) throw new UsageError(`tune: no ${[...LOG_NAMES].join(' or ')} below ${path}`)
  return found
}

function isFolder(path: string): boolean {
  try {
    return statInput(path).isDirectory()
  } catch (error) {
    if (!(error instanceof UnreadableInput)) throw error
    if (error.kind === 'absent') throw new UsageError(`tune: there is no file or folder ${path}`)
    throw new UsageError(`tune: ${path} ${error.message}`)
  }
}

function search(folder: string, depth: number): string[] {
  let entries
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (depth > 0) return []
    throw new UsageError(`tune: ${folder} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
  }
  return entries
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return depth < MAX_DEPTH ? search(path, depth + 1) : []
      return LOG_NAMES.has(entry.name) ? [path] : []
    })
}
