/** Files that a person names: read as a whole, never waited for. */
import { readFileSync, statSync, type Stats } from 'node:fs'

/** Largest session log that is read, packed and unpacked. */
export const MAX_LOG_BYTES = 256 * 2 ** 20
/** Far more than any configuration or manifest holds. */
const MAX_TEXT_BYTES = 16 * 2 ** 20

/** A file cannot be read; the message is what is wrong with it, to be put after its name. */
export class UnreadableInput extends Error {
  override name = 'UnreadableInput'
  readonly kind: 'absent' | 'folder' | 'special' | 'large' | 'refused'

  constructor(kind: UnreadableInput['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

/**
 * Read a regular file. A pipe, a socket or a device has no end of its own: it is refused before it is opened.
 * @throws UnreadableInput
 */
export function readInput(path: string, maxBytes: number): Buffer {
  const stats = statInput(path)
  if (stats.isDirectory()) throw new UnreadableInput('folder', 'is a folder')
  if (stats.size > maxBytes) throw new UnreadableInput('large', `is larger than ${maxBytes / 2 ** 20} MiB`)
  try {
    return readFileSync(path)
  } catch (error) {
    throw refused(error)
  }
}

/** {@link readInput} for text of a configuration's size. */
export function readTextInput(path: string): string {
  return readInput(path, MAX_TEXT_BYTES).toString('utf8')
}

/**
 * What is at a path: a regular file or a folder.
 * @throws UnreadableInput when there is nothing, or something else.
 */
export function statInput(path: string): Stats {
  let stats
  try {
    stats = statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw refused(error)
  }
  if (stats === undefined) throw new UnreadableInput('absent', 'is not there')
  const special = nameOf(stats)
  if (special !== undefined) throw new UnreadableInput('special', `is ${special}, not a regular file`)
  return stats
}

function nameOf(stats: Stats): string | undefined {
  if (stats.isFIFO()) return 'a pipe'
  if (stats.isSocket()) return 'a socket'
  return stats.isFile() || stats.isDirectory() ? undefined : 'a device'
}

function refused(error: unknown): UnreadableInput {
  return new UnreadableInput('refused', `cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
}
