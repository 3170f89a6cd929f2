/** A session log as somebody reads it who shares no code with its writer but the storage rows: from the bytes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants, zstdDecompressSync } from 'node:zlib'
import { decodeStorageRecord, type SessionEvent } from '@deepseek-ai/dsh-session'

/** What lies on disk. */
export interface Outside {
  readonly path: string
  /** Events of complete lines and complete frames: what an fsync may have promised. */
  readonly events: readonly SessionEvent[]
  /** The same with what a torn last frame still gives away. */
  readonly recoverable: readonly SessionEvent[]
  /** Bytes after the last complete line or frame. */
  readonly torn: number
}

const ZSTD_MAGIC = 0xfd2fb528
const NEWLINE = 10

/** Path of a session's log below a root, once it exists. */
export function findLog(root: string, sessionId: string): string | undefined {
  if (!existsSync(root)) return undefined
  const name = readdirSync(root, { recursive: true, encoding: 'utf8' }).find(
    (path) => path.includes(`${sessionId}/session.jsonl`) && !path.endsWith('.tmp'),
  )
  return name === undefined ? undefined : join(root, name)
}

/** Read a log. @throws when a complete line or frame cannot be read: that is damage, not a torn tail. */
export function readOutside(path: string): Outside {
  const bytes = readFileSync(path)
  if (!path.endsWith('.zstd')) {
    const end = bytes.lastIndexOf(NEWLINE) + 1
    const events = decode(bytes.subarray(0, end))
    return { path, events, recoverable: events, torn: bytes.length - end }
  }
  const frames: Buffer[] = []
  let offset = 0
  for (let end = frameEnd(bytes, 0); end !== undefined; end = frameEnd(bytes, offset)) {
    frames.push(zstdDecompressSync(bytes.subarray(offset, end)))
    offset = end
  }
  const events = decode(Buffer.concat(frames))
  const tail = bytes.subarray(offset)
  const rest = plainPrefix(tail)
  const recoverable = decode(Buffer.concat([...frames, rest.subarray(0, rest.lastIndexOf(NEWLINE) + 1)]))
  return { path, events, recoverable, torn: tail.length }
}

function decode(text: Buffer): SessionEvent[] {
  const lines = text
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.slice(1).flatMap((line) => decodeStorageRecord(JSON.parse(line)))
}

function plainPrefix(tail: Buffer): Buffer {
  try {
    return tail.length === 0 ? tail : zstdDecompressSync(tail, { finishFlush: constants.ZSTD_e_flush })
  } catch {
    // Torn before its first block: nothing can be read out of it.
    return Buffer.alloc(0)
  }
}

/** End of the frame at `start` by RFC 8878, or undefined where the bytes end before it does. */
function frameEnd(bytes: Buffer, start: number): number | undefined {
  if (bytes.length - start < 6) return undefined
  if (bytes.readUInt32LE(start) !== ZSTD_MAGIC) throw new Error(`no zstd frame at byte ${start}`)
  const descriptor = bytes.readUInt8(start + 4)
  const single = (descriptor & 32) !== 0
  const sizeFlag = descriptor >>> 6
  const dictionary = [0, 1, 2, 4][descriptor & 3] ?? 0
  let offset = start + 5 + (single ? 0 : 1) + dictionary + (sizeFlag === 0 ? (single ? 1 : 0) : 1 << sizeFlag)
  for (let last = false; !last;) {
    if (bytes.length - offset < 3) return undefined
    const header = bytes.readUIntLE(offset, 3)
    last = (header & 1) === 1
    offset += 3 + (((header >>> 1) & 3) === 1 ? 1 : header >>> 3)
  }
  if ((descriptor & 4) !== 0) offset += 4
  return offset <= bytes.length ? offset : undefined
}

/** Ids of the calls that are recorded. */
export function callsOf(events: readonly SessionEvent[]): Set<string> {
  return new Set(events.flatMap((event) => (event.type === 'tool/call' ? [event.data.callId] : [])))
}
