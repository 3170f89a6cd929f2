/** Log lines that cannot flood: one per kind and interval, with the number of those held back. */

/** The part of a Cordis logger that is used. */
export interface Logger {
  warn(message: string): void
  error(message: string): void
}

/** Quiet time after a line of one kind. */
const INTERVAL_MS = 60_000

/** Writes at most one warning of each kind per minute. */
export class LimitedLog {
  readonly #logger: Logger
  readonly #kinds = new Map<string, { nextAt: number; held: number }>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /**
   * Warn, unless a line of this kind was written within the last minute.
   * @param kind - one of a fixed number of words, which bounds the memory.
   * @param message - built only when the line is written.
   */
  warn(kind: string, message: () => string): void {
    const now = performance.now()
    const state = this.#kinds.get(kind)
    if (state !== undefined && now < state.nextAt) {
      state.held += 1
      return
    }
    const held = state?.held ?? 0
    this.#kinds.set(kind, { nextAt: now + INTERVAL_MS, held: 0 })
    try {
      this.#logger.warn(held === 0 ? message() : `${message()} (${held} more like this since the last line)`)
    } catch {
      // The host's logger failed, or an error turned hostile when printed: there is nowhere left to say so.
    }
  }
}
