/** A recorded session log as rows: type, time, size. Raw JSONL or zstd; damage is found here. */
import { zstdDecompressSync } from 'node:zlib'
import { MAX_LOG_BYTES, readInput, UnreadableInput } from '../input-file.ts'

/** One line of a log. `data` is read for its structure and its sizes, and never leaves the extraction of shapes. */
export interface LogRow {
  readonly type: string
  /** Milliseconds since the epoch. */
  readonly time: number
  /** Length of the line. */
  readonly bytes: number
  readonly data: Readonly<Record<string, unknown>>
}

/** A log that was read. */
export interface RecordedLog {
  readonly version: number
  readonly encoding: 'zstd' | 'raw'
  readonly rows: readonly LogRow[]
  /** Whether the end was torn off, as a crash leaves it. */
  readonly torn: boolean
}

/** It cannot be read; the message says why. */
export class UnreadableLog extends Error {
  override name = 'UnreadableLog'
}

const ZSTD_MAGIC = 0xfd2fb528

/**
 * Read a log.
 * @throws UnreadableLog when it is none, or damaged elsewhere than at its end.
 */
export function readLog(path: string): RecordedLog {
  const bytes = read(path)
  const encoding = bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTD_MAGIC ? 'zstd' : 'raw'
  const plain = encoding === 'raw' ? { text: bytes.toString('utf8'), torn: false } : inflate(bytes)
  const lines = plain.text.split('\n')
  // What follows the last newline was being written when its process died.
  const rest = lines.pop() ?? ''
  const version = readVersion(lines.shift() ?? rest)
  return { version, encoding, rows: readRows(lines), torn: plain.torn || rest !== '' }
}

function read(path: string): Buffer {
  try {
    return readInput(path, MAX_LOG_BYTES)
  } catch (error) {
    if (!(error instanceof UnreadableInput)) throw error
    throw new UnreadableLog(error.message)
  }
}

/** One frame per write; the one-shot decoder stops after the first, and tells where it stopped. */
function inflate(bytes: Buffer): { text: string; torn: boolean } {
  const parts: Buffer[] = []
  let size = 0
  for (let offset = 0; offset < bytes.length;) {
    try {
      const options = { info: true, maxOutputLength: MAX_LOG_BYTES } as object
      const frame = zstdDecompressSync(bytes.subarray(offset), options) as unknown as {
        buffer: Buffer
        engine: { bytesWritten: number }
      }
      // The end of a frame may be missing without an error; what there is of it then comes to nothing.
      if (frame.buffer.length === 0) return { text: Buffer.concat(parts).toString('utf8'), torn: true }
      parts.push(frame.buffer)
      size += frame.buffer.length
      offset += frame.engine.bytesWritten
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'Z_BUF_ERROR' || code === 'ZSTD_error_srcSize_wrong')
        return { text: Buffer.concat(parts).toString('utf8'), torn: true }
      throw new UnreadableLog(`damaged: the zstd frame at byte ${offset} does not decode (${code ?? message})`)
    }
    if (size > MAX_LOG_BYTES) throw new UnreadableLog(`is larger than ${MAX_LOG_BYTES / 2 ** 20} MiB`)
  }
  return { text: Buffer.concat(parts).toString('utf8'), torn: false }
}

function readVersion(line: string): number {
  const header = parse(line)
  if (header?.['type'] !== 'session' || typeof header['version'] !== 'number') {
    throw new UnreadableLog('no session log: its first line is no session header (looked for raw JSONL and zstd)')
  }
  return header['version']
}

function readRows(lines: readonly string[]): LogRow[] {
  let last = -1
  return lines.map((line, index) => {
    const row = parse(line)
    const type = row?.['type']
    // Runs of chunks are packed into one line, which counts from its first event.
    const time = row?.['time'] ?? row?.['time0']
    const seq = row?.['seq'] ?? row?.['seq0']
    if (row === undefined || typeof type !== 'string' || typeof time !== 'number' || !Number.isFinite(time)) {
      throw new UnreadableLog(`damaged: line ${index + 2} is no event`)
    }
    if (typeof seq === 'number') {
      if (seq <= last) throw new UnreadableLog(`damaged: line ${index + 2} repeats seq ${seq}`)
      last = seq
    }
    return { type, time, bytes: Buffer.byteLength(line), data: record(row['data']) }
  })
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    // No JSON: the caller says what it was looking for.
    return undefined
  }
}

/** An object, empty where there is none. */
export function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
