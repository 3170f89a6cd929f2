/** Whether writes, syncs and links work in a folder, and how long they take. */
import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { interruptible } from '../interrupt.ts'

/** Result of a probe. */
export type Probe =
  | { readonly medianMs: number; readonly slowestMs: number; readonly appends: number; readonly linkError?: string }
  | { readonly error: string }

/** Writes of one probe, each followed by a sync as the JSONL backend does. */
const APPENDS = 20
const RECORD = Buffer.alloc(512, '.')

/**
 * Append to a file of our own and sync it a few times, and take it away again. A file: backends look into folders only.
 * @throws Interrupted after a signal; the file is gone then, too.
 */
export async function probeDisk(folder: string): Promise<Probe> {
  const file = join(folder, `.checkpoint-doctor-${randomUUID()}`)
  const cleanUp = () => {
    for (const path of [file, linkOf(file)]) remove(path)
  }
  return interruptible(cleanUp, (signal) => probe(file, signal))
}

async function probe(file: string, signal: AbortSignal): Promise<Probe> {
  try {
    const times = await appendTimes(file, signal)
    return {
      appends: APPENDS,
      medianMs: times[Math.floor(APPENDS / 2)] ?? 0,
      slowestMs: times.at(-1) ?? 0,
      linkError: tryLink(file),
    }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

async function appendTimes(file: string, signal: AbortSignal): Promise<number[]> {
  const descriptor = openSync(file, 'ax')
  try {
    const times: number[] = []
    while (times.length < APPENDS) {
      const start = performance.now()
      writeSync(descriptor, RECORD)
      fsyncSync(descriptor)
      times.push(performance.now() - start)
      // A signal is heard between two appends only: a thread of its own for each would be part of the time.
      await setImmediate()
      signal.throwIfAborted()
    }
    return times.toSorted((a, b) => a - b)
  } finally {
    closeSync(descriptor)
  }
}

/** The JSONL backend publishes each new log with a hard link, so that two of one id cannot overwrite each other. */
function tryLink(file: string): string | undefined {
  if (process.platform === 'win32') return undefined
  try {
    linkSync(file, linkOf(file))
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

function linkOf(file: string): string {
  return `${file}.link`
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The disk that just failed the probe may fail this too; the probe has said so.
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'an unknown error'
}
