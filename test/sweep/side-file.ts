/**
 * What the outside world remembers of a life: each effect and each request, written with fsync at the moment it happens,
 * together with what the session log on disk said at that moment.
 */
import { fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { GenerateOptions } from '@deepseek-ai/dsh-llm'
import { callsOf, findLog, readOutside } from './outside.ts'

/** One thing that left the process. */
export type Effect =
  | {
      readonly kind: 'call'
      readonly sessionId: string
      readonly callId: string
      readonly tool: string
      readonly onDisk: boolean
      readonly guarded: boolean
    }
  /** `needs`: events recorded before the host asked for the stream; `durable`: events on disk when the adapter was called. */
  | {
      readonly kind: 'request'
      readonly sessionId: string
      readonly needs: number
      readonly durable: number
      readonly guarded: boolean
    }

/** What a life does to the outside world. */
export class SideFile {
  readonly #root: string
  readonly #file: number
  /** Whether the policy was mounted when the host came to the boundary: without it nothing is promised. */
  readonly #calls = new Map<string, { readonly sessionId: string; readonly guarded: boolean }>()
  readonly #requests = new WeakMap<object, { readonly needs: number; readonly guarded: boolean }>()

  constructor({ root, side }: { readonly root: string; readonly side: string }) {
    this.#root = root
    mkdirSync(side, { recursive: true })
    this.#file = openSync(`${side}/effects`, 'a')
  }

  /** The host is about to dispatch a call. */
  dispatching(callId: string, sessionId: string, guarded: boolean): void {
    this.#calls.set(callId, { sessionId, guarded })
  }

  /** The host asked for a stream; `seq` is where its session stood. */
  streaming(request: object, seq: number, guarded: boolean): void {
    this.#requests.set(request, { needs: seq, guarded })
  }

  /** A body has its effect now. */
  effect(callId: string, tool: string): void {
    const { sessionId = '', guarded = false } = this.#calls.get(callId) ?? {}
    this.#write({
      kind: 'call',
      sessionId,
      callId,
      tool,
      onDisk: callsOf(this.#onDisk(sessionId)).has(callId),
      guarded,
    })
  }

  /** An adapter sends a request now. */
  request(request: GenerateOptions): void {
    const sessionId = String(request.sessionId)
    const { needs = 0, guarded = false } = this.#requests.get(request) ?? {}
    this.#write({ kind: 'request', sessionId, needs, durable: this.#onDisk(sessionId).length, guarded })
  }

  #onDisk(sessionId: string) {
    const path = findLog(this.#root, sessionId)
    return path === undefined ? [] : readOutside(path).events
  }

  #write(effect: Effect): void {
    writeSync(this.#file, `${JSON.stringify(effect)}\n`)
    fsyncSync(this.#file)
  }
}

/** Everything that left a life, in order. */
export function effectsOf(side: string): Effect[] {
  return linesOf(`${side}/effects`) as Effect[]
}

/** The JSON lines of a file, without one that is torn. */
export function linesOf(path: string): unknown[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    return lines.slice(0, -1).map((line) => JSON.parse(line) as unknown)
  } catch (error) {
    // Killed before its first write.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
