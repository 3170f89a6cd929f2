/** A session log that somebody brings along: is it one, and can the installed harness read it? */
import { zstdDecompressSync } from 'node:zlib'
import { SESSION_FORMAT_VERSION, type SessionHeader } from '@deepseek-ai/dsh-session'
import { UsageError } from './command.ts'
import { MAX_LOG_BYTES, readInput, UnreadableInput } from './input-file.ts'

/** A session log as it lies on disk. */
export interface SessionFile {
  readonly path: string
  readonly bytes: Buffer
  readonly compression: 'zstd' | 'none'
  /** First line. The backend checks it again, and the rest of the log. */
  readonly header: SessionHeader
}

const ZSTD_MAGIC = 0xfd2fb528
/** A header line is far below this; a frame that inflates to more is no header. */
const MAX_HEADER_BYTES = 1 << 20
const NEWLINE = 10

/**
 * Read a file and its header. The encoding is found by content, whatever the file is called.
 * @param flag - flag that named the file, for the message.
 * @throws UsageError when it is no session log of the version that is read here.
 */
export function readSessionFile(flag: string, path: string): SessionFile {
  const bytes = read(flag, path)
  const compression = bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTD_MAGIC ? 'zstd' : 'none'
  const header = parse(headerLine(bytes, compression))
  if (header === undefined) {
    throw new UsageError(
      `${flag}: ${path} is not a session log: its first line is no session header (looked for raw JSONL and zstd)`,
    )
  }
  if (header.version !== SESSION_FORMAT_VERSION) {
    const age = header.version > SESSION_FORMAT_VERSION ? 'newer' : 'older'
    throw new UsageError(
      `${flag}: ${path} has log format version ${header.version}, ${age} than version ${SESSION_FORMAT_VERSION}, ` +
        'the one that the installed harness packages read',
    )
  }
  return { path, bytes, compression, header }
}

function read(flag: string, path: string): Buffer {
  try {
    return readInput(path, MAX_LOG_BYTES)
  } catch (error) {
    if (!(error instanceof UnreadableInput)) throw error
    if (error.kind === 'absent') throw new UsageError(`${flag}: there is no file ${path}`)
    const remedy = error.kind === 'folder' ? '; name the session.jsonl or session.jsonl.zstd file in it' : ''
    throw new UsageError(`${flag}: ${path} ${error.message}${remedy}`)
  }
}

function headerLine(bytes: Buffer, compression: 'zstd' | 'none'): string {
  const end = (plain: Buffer) =>
    plain.toString('utf8', 0, Math.max(0, Math.min(plain.indexOf(NEWLINE), MAX_HEADER_BYTES)))
  if (compression === 'none') return end(bytes)
  try {
    // The header is a frame of its own.
    return end(zstdDecompressSync(bytes, { maxOutputLength: MAX_HEADER_BYTES }))
  } catch {
    // Not zstd after its magic number, or a first frame too large to be a header: no session log.
    return ''
  }
}

function parse(line: string): SessionHeader | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    // No JSON: no session log.
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { type, id, version, cwd } = value as Record<string, unknown>
  const isHeader = type === 'session' && typeof id === 'string' && id !== '' && typeof version === 'number'
  return isHeader && (cwd === undefined || (typeof cwd === 'string' && cwd !== ''))
    ? (value as unknown as SessionHeader)
    : undefined
}
