/** `ctx.checkpoints`: what the policy tells everyone who listens. */
import type { Boundary, CheckpointRecord, OpenBarrier } from './barrier.ts'

/** Receives each settled barrier and each recovered call; a throw or a rejection is contained. */
export type CheckpointObserver = (record: CheckpointRecord) => unknown

/** Values of now, for gauges and health checks. Ages in milliseconds. */
export interface CheckpointState {
  readonly active: Readonly<Record<Boundary, number>>
  readonly oldestAgeMs: number
  readonly unflushedOldestAgeMs: number
  readonly consecutiveFailures: number
  readonly strategy: string
}

/** Service of the checkpoint policy. Read it once in `apply`, with `inject: ['checkpoints']`. */
export interface Checkpoints {
  /**
   * Call `observer` once per settled barrier and per recovered call, in that order, synchronously.
   * @returns a disposer; wrap it in `ctx.effect` so that it ends with your plugin.
   */
  observe(observer: CheckpointObserver): () => void
  /** Barriers that have not settled, oldest first. */
  open(): readonly OpenBarrier[]
  /** Gauges of this moment. */
  state(): CheckpointState
  /** Bounds of the duration histograms, in seconds, ascending. */
  readonly durationBucketsSeconds: readonly number[]
  /** Whether a strategy may release a request or a tool call whose log is not durable. */
  readonly allowUnguarded: boolean
}

/**
 * The observer list: a plain array, because an event bus costs 5 µs a call and stops at the first throw. It is replaced,
 * never changed, so that an observer may remove itself or add another while it is called.
 */
export class Observers {
  #observers: readonly { readonly call: CheckpointObserver }[] = []
  readonly #failed: (observer: CheckpointObserver, error: unknown) => void

  constructor(failed: (observer: CheckpointObserver, error: unknown) => void) {
    this.#failed = failed
  }

  get empty(): boolean {
    return this.#observers.length === 0
  }

  add(observer: CheckpointObserver): () => void {
    if (typeof observer !== 'function') {
      throw new TypeError(`checkpoints: observer must be a function, got ${typeof observer}`)
    }
    // An entry of its own, so that one function observing twice is removed once at a time.
    const entry = { call: observer }
    this.#observers = [...this.#observers, entry]
    return () => {
      this.#observers = this.#observers.filter((other) => other !== entry)
    }
  }

  announce(record: CheckpointRecord): void {
    Object.freeze(record)
    for (const { call } of this.#observers) {
      try {
        const returned = call(record)
        if (isThenable(returned)) returned.then(undefined, (error: unknown) => this.#failed(call, error))
      } catch (error) {
        this.#failed(call, error)
      }
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
