/** Lists that keep a fixed number of entries. */
import type { SettledBarrier } from '../barrier.ts'

/** The newest entries. */
export class Ring<T> {
  readonly #entries: T[] = []
  readonly #capacity: number
  #added = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Entries ever added. */
  get added(): number {
    return this.#added
  }

  add(entry: T): void {
    this.#entries[this.#added % this.#capacity] = entry
    this.#added += 1
  }

  /**
   * The newest entries, newest first.
   * @param count - how many, at most the capacity.
   */
  newest(count = this.#capacity): T[] {
    const length = Math.min(count, this.#entries.length)
    return Array.from({ length }, (_, index) => this.#entries[(this.#added - 1 - index) % this.#capacity] as T)
  }
}

/** The barriers that waited longest. */
export class Slowest {
  readonly #capacity: number
  readonly #entries: SettledBarrier[] = []
  /** Raised with each change. */
  version = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Longest first. */
  get entries(): readonly SettledBarrier[] {
    return this.#entries
  }

  /** @returns whether the barrier is one of them. */
  add(barrier: SettledBarrier): boolean {
    const { durationMs } = barrier
    const full = this.#entries.length === this.#capacity
    if (durationMs === 0 || (full && durationMs <= (this.#entries.at(-1)?.durationMs ?? 0))) return false
    const place = this.#entries.findIndex((entry) => entry.durationMs < durationMs)
    this.#entries.splice(place === -1 ? this.#entries.length : place, 0, barrier)
    if (full) this.#entries.pop()
    this.version += 1
    return true
  }
}

const MAX_TEXT = 200

/**
 * The record, or a copy of it whose texts are cut: a tool may have a name of a megabyte, and a kept record would keep it.
 * @param record - frozen, of texts and numbers.
 */
export function clipped<T extends object>(record: T): T {
  let copy: T | undefined
  for (const key in record) {
    const value: unknown = record[key]
    if (typeof value === 'string' && value.length > MAX_TEXT) (copy ??= { ...record })[key] = clip(value) as never
  }
  return copy ?? record
}

/** The beginning of a text. Through a buffer, because a plain slice keeps the whole text alive. */
export function clip(text: string, length = MAX_TEXT): string {
  return text.length <= length ? text : `${Buffer.from(text.slice(0, length)).toString()}…`
}
