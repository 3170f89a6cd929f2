/** The dsh that a profile belongs to. */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { packageFolder, readManifest, type Place } from './place.ts'

const CLI = '@deepseek-ai/dsh'

/**
 * Folder of the CLI: linked into the home by dsh itself, installed beside the profile, or found on the path.
 * @returns undefined where there is none.
 */
export function findCli(place: Place): string | undefined {
  const installed = packageFolder(CLI, place.folder)
  if (installed !== undefined) return installed
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const program = join(folder, 'dsh')
    if (!existsSync(program)) continue
    const candidate = dirname(dirname(entryOf(program)))
    // Another program has this name too.
    if (readManifest(candidate)?.name === CLI) return candidate
  }
  return undefined
}

/** The script behind a program: a symbolic link, or pnpm's shell shim that names it. */
function entryOf(program: string): string {
  const target = realpathSync(program)
  const named = /"\$basedir\/([^"]+\/lib\/bin\.js)"/.exec(readFileSync(target, 'utf8').slice(0, MAX_SHIM))?.[1]
  return named === undefined ? target : join(dirname(target), named)
}

const MAX_SHIM = 4_096
