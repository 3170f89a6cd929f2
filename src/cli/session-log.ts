/** A session log read from outside the agent, straight from its file. */
import { closeSync, openSync, readSync } from 'node:fs'
import { decodeStorageRecord, type SessionEvent } from '@deepseek-ai/dsh-session'

const NEWLINE = 10
const CHUNK_BYTES = 64 * 1_024

/**
 * Follows one raw JSONL log on disk. Each read takes only what was appended since the last, through a descriptor of
 * its own, so that nothing the writer holds in memory can be mistaken for what is on disk.
 */
export class LogTail {
  readonly #path: string
  /** Ids of calls whose `tool/call` is on disk. */
  readonly calls = new Set<string>()
  readonly events: SessionEvent[] = []
  #offset = 0
  #rest: Buffer = Buffer.alloc(0)
  #header = false

  constructor(path: string) {
    this.#path = path
  }

  /** Events on disk, read now; a file that is not there yet has none. */
  read(): readonly SessionEvent[] {
    let file: number
    try {
      file = openSync(this.#path, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return this.events
      throw error
    }
    try {
      const chunk = Buffer.alloc(CHUNK_BYTES)
      for (;;) {
        const bytes = readSync(file, chunk, 0, chunk.length, this.#offset)
        if (bytes === 0) return this.events
        this.#offset += bytes
        this.#take(Buffer.concat([this.#rest, chunk.subarray(0, bytes)]))
      }
    } finally {
      closeSync(file)
    }
  }

  #take(bytes: Buffer): void {
    let start = 0
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      const line: unknown = JSON.parse(bytes.toString('utf8', start, end))
      start = end + 1
      if (!this.#header) {
        this.#header = true
        continue
      }
      for (const event of decodeStorageRecord(line)) {
        this.events.push(event)
        if (event.type === 'tool/call') this.calls.add(event.data.callId)
      }
    }
    this.#rest = bytes.subarray(start)
  }
}

/** Whether no `seq` was written twice or missed. */
export function isContiguous(events: readonly SessionEvent[]): boolean {
  return events.every((event, index) => event.seq === index)
}

/** What a log says about one tool call the model asked for. */
export interface CallFate {
  readonly callId: string
  readonly toolName: string
  readonly turn: number
  readonly step: number
  /**
   * `answered`: it has its result. `open`: its turn never ended, so recovery answers it. `unresolved`: its step or
   * turn was closed without a result, which recovery does not touch and no provider accepts.
   */
  readonly state: 'answered' | 'open' | 'unresolved'
  /** Error code of the result, where it has one. */
  readonly code?: string
}

/** Every call of a log, in order, by the rule that recovery itself follows. */
export function fatesOf(events: readonly SessionEvent[]): readonly CallFate[] {
  const fates: CallFate[] = []
  const pending = new Map<string, CallFate>()
  // Recorded, but asked for by no message: recovery does not look at these.
  const unasked = new Set<string>()
  let turnOpen = false
  const close = (state: 'open' | 'unresolved') => {
    for (const fate of pending.values()) fates.push({ ...fate, state: unasked.has(fate.callId) ? 'unresolved' : state })
    pending.clear()
    unasked.clear()
  }
  for (const event of events) {
    switch (event.type) {
      case 'turn/start':
        close('unresolved')
        turnOpen = true
        break
      case 'assistant/message':
        for (const block of event.data.message.content) {
          if (block.type !== 'tool-call') continue
          const { step } = event.data
          pending.set(block.id, { callId: block.id, toolName: block.name, turn: event.data.turn, step, state: 'open' })
        }
        break
      case 'tool/call': {
        const { callId, name: toolName, step } = event.data
        if (pending.has(callId)) break
        unasked.add(callId)
        pending.set(callId, { callId, toolName, turn: event.data.turn, step, state: 'unresolved' })
        break
      }
      case 'tool/result': {
        const fate = pending.get(event.data.message.source.callId)
        if (fate === undefined) break
        pending.delete(fate.callId)
        fates.push({ ...fate, state: 'answered', code: event.data.error?.code })
        break
      }
      case 'step/end':
        close('unresolved')
        break
      case 'turn/end':
        close('unresolved')
        turnOpen = false
        break
      default:
        break
    }
  }
  // Recovery closes only a turn that is still open.
  close(turnOpen ? 'open' : 'unresolved')
  return fates
}
