/** The real JSONL backend with a door in front of each append: counted, held, refused, timed. */
import { readFileSync } from 'node:fs'
import type { SessionEvent, SessionHeader } from '@deepseek-ai/dsh-session'
import { JsonlSessionPersistence } from '@deepseek-ai/dsh-session-persistence-jsonl'

/** One append: one write and one fsync of one session's file. */
export interface Append {
  /** Serial number on this disk, from 1. */
  readonly number: number
  readonly sessionId: string
  /** `seq` of the first event written. */
  readonly firstSeq: number
  readonly types: readonly string[]
}

/** What happens before the bytes are written: nothing, a wait, or a throw that refuses the append. */
export type Door = (append: Append) => void | Promise<void>

/** A disk under test. */
export class Disk {
  /** Appends that were asked for, oldest first; at most {@link Disk.KEPT}. */
  readonly appends: Append[] = []
  /** Appends that reached the file. */
  written = 0
  door: Door | undefined
  /** Path of each session's file, once it was written to. */
  readonly files = new Map<string, string>()
  /** The backend, a plugin to mount in place of the stock one. */
  readonly plugin: typeof JsonlSessionPersistence
  static readonly KEPT = 10_000
  readonly #durable = new Map<string, number>()
  #count = 0

  constructor() {
    const enter = (meta: SessionHeader, events: readonly SessionEvent[]) => this.#enter(meta, events)
    const done = (meta: SessionHeader, events: readonly SessionEvent[], path: string) => {
      this.written += 1
      this.files.set(meta.id, path)
      this.#durable.set(meta.id, (events.at(-1)?.seq ?? -1) + 1)
    }
    this.plugin = class extends JsonlSessionPersistence {
      override async appendBatch(
        meta: SessionHeader,
        events: readonly SessionEvent[],
        isMaterialized: boolean,
      ): Promise<void> {
        await enter(meta, events)
        await super.appendBatch(meta, events, isMaterialized)
        done(meta, events, this.locate(meta).path)
      }
    }
  }

  /** Events of the session with a smaller `seq` are on disk. */
  durableSeq(sessionId: string): number {
    return this.#durable.get(sessionId) ?? 0
  }

  /** Whether the session's file, read now, holds the recorded call. */
  holdsCall(sessionId: string, callId: string): boolean {
    const path = this.files.get(sessionId)
    if (path === undefined) return false
    const lines = readFileSync(path, 'utf8').split('\n')
    return lines.some((line) => line.includes('"tool/call"') && line.includes(JSON.stringify(callId)))
  }

  #enter(meta: SessionHeader, events: readonly SessionEvent[]): void | Promise<void> {
    const append: Append = {
      number: (this.#count += 1),
      sessionId: meta.id,
      firstSeq: events[0]?.seq ?? -1,
      types: events.map((event) => event.type),
    }
    this.appends.push(append)
    if (this.appends.length > Disk.KEPT) this.appends.shift()
    return this.door?.(append)
  }
}

/** An error as the operating system would raise it. */
export function storageError(code: string, message = 'injected by the test'): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
