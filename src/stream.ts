/** A model stream that waits for its barrier at the first pull. */

/** How a stream meets its barrier. */
export interface Gate<T> {
  /** Open the barrier; resolves when its wait is over, never rejects. */
  open(): Promise<void> | undefined
  /** Whether to go on; throws to refuse the request. Called once, after {@link open}. */
  settle(): boolean
  /** The consumer left before {@link settle}. */
  cancel(): void
  /** The adapter's stream; called once, only after {@link settle} said to go on. */
  release(): AsyncIterable<T>
  /** Run a call of the adapter's stream where it belongs in the trace. */
  run<R>(call: () => R): R
  /** The only chunk of a request that was cancelled at the barrier. */
  aborted(): T
}

const DONE: IteratorResult<never, undefined> = { done: true, value: undefined }

/**
 * A plain iterator instead of an async generator: `return()` is seen while the barrier is pending, and no frame of
 * ours stands between the consumer and the adapter once the barrier is passed.
 */
export class GatedStream<T> implements AsyncIterableIterator<T, unknown, undefined> {
  readonly #gate: Gate<T>
  #opened: { readonly ready: Promise<void> | undefined } | undefined
  #inner: AsyncIterator<T> | undefined
  #ended = false

  constructor(gate: Gate<T>) {
    this.#gate = gate
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<T, unknown>> {
    const inner = this.#inner
    return inner === undefined ? this.#first() : this.#gate.run(() => inner.next())
  }

  return(value?: unknown): Promise<IteratorResult<T, unknown>> {
    const inner = this.#inner
    const left: IteratorResult<T, unknown> = { done: true, value }
    if (inner !== undefined) {
      this.#inner = undefined
      this.#ended = true
      return this.#gate.run(() => inner.return?.(value) ?? Promise.resolve(left))
    }
    if (this.#opened !== undefined && !this.#ended) this.#gate.cancel()
    this.#ended = true
    return Promise.resolve(left)
  }

  async throw(error?: unknown): Promise<IteratorResult<T, unknown>> {
    const inner = this.#inner
    if (inner?.throw !== undefined) return this.#gate.run(() => inner.throw?.(error) ?? Promise.resolve(DONE))
    await this.return()
    throw error
  }

  /** A pull before the adapter's stream exists. Several may be pending; the earliest to resume makes the stream. */
  async #first(): Promise<IteratorResult<T, unknown>> {
    if (this.#ended) return DONE
    this.#opened ??= { ready: this.#gate.open() }
    await this.#opened.ready
    if (this.#ended) return DONE
    if (this.#inner === undefined) {
      // Ended until proven otherwise: a refusal, a cancellation and a throw all leave nothing more to pull.
      this.#ended = true
      if (!this.#gate.settle()) return { done: false, value: this.#gate.aborted() }
      this.#inner = this.#gate.run(() => this.#gate.release()[Symbol.asyncIterator]())
      this.#ended = false
    }
    const inner = this.#inner
    return this.#gate.run(() => inner.next())
  }
}
