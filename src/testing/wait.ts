/** Waiting with a bound: a strategy under test may hang anything. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Something did not end in time. */
export class OverdueError extends Error {
  override name = 'OverdueError'
}

/** The promise's result, or an {@link OverdueError} after `limitMs`. */
export async function within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T> {
  const timer = Promise.withResolvers<never>()
  const handle = setTimeout(() => timer.reject(new OverdueError(`${what} did not end within ${limitMs} ms`)), limitMs)
  try {
    return await Promise.race([promise, timer.promise])
  } finally {
    clearTimeout(handle)
  }
}

/** Whether the condition came true within `limitMs`. */
export async function eventually(limitMs: number, condition: () => boolean): Promise<boolean> {
  const deadline = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() >= deadline) return false
    await sleep(1)
  }
  return true
}

/** A generator of numbers in [0, 1) that a seed repeats (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

/** An error in one line. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
