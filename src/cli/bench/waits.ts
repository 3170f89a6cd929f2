/**
 * How long an agent waits, measured from outside a policy: a hook around it marks when a wait began, a hook behind it
 * when it ended. The same ruler for every policy, ours or not.
 */
import type { Context } from '@deepseek-ai/cordis'
import type {} from '@deepseek-ai/dsh-agent'
import type {} from '@deepseek-ai/dsh-llm'
import type {} from '@deepseek-ai/dsh-tools'

/** Boundaries at which an agent may wait. */
export const WAITED = ['request', 'tool', 'step'] as const
export type Waited = (typeof WAITED)[number]

/** Waits at one boundary; those that overlap count each. */
interface WaitSum {
  readonly count: number
  readonly ms: number
}

/** What was waited since the last reset. */
export interface Waits {
  /** Time in which at least one barrier waited, in milliseconds. */
  readonly totalMs: number
  readonly boundaries: Readonly<Record<Waited, WaitSum>>
}

/** One ruler: mount {@link WaitMeter.outer} before the policy and {@link WaitMeter.inner} behind it. */
export class WaitMeter {
  #waiting = 0
  #since = 0
  #totalMs = 0
  #sums = emptySums()

  readonly outer = {
    name: 'wait-meter-outer',
    apply: (ctx: Context): void => {
      ctx.on('tools/execute', (_exec, next) => (this.#begin('tool'), next()))
      ctx.on('agent/pre-step', (_payload, next) => (this.#begin('step'), next()))
      ctx.on('llm/stream', (_options, next) => {
        const stream = next()[Symbol.asyncIterator]()
        let first = true
        return {
          [Symbol.asyncIterator]: () => ({
            next: () => {
              // The wait begins with the first pull: nothing happens before it.
              if (first) this.#begin('request')
              first = false
              return stream.next()
            },
            return: async () => stream.return?.() ?? { done: true, value: undefined },
          }),
        }
      })
    },
  }

  readonly inner = {
    name: 'wait-meter-inner',
    apply: (ctx: Context): void => {
      ctx.on('tools/execute', (_exec, next) => (this.#end('tool'), next()))
      ctx.on('agent/pre-step', (_payload, next) => (this.#end('step'), next()))
      ctx.on('llm/stream', (_options, next) => (this.#end('request'), next()))
    },
  }

  reset(): void {
    this.#waiting = 0
    this.#totalMs = 0
    this.#sums = emptySums()
  }

  read(): Waits {
    const boundaries = Object.fromEntries(WAITED.map((boundary) => [boundary, { ...this.#sums[boundary] }]))
    return { totalMs: this.#totalMs, boundaries: boundaries as Record<Waited, WaitSum> }
  }

  #begin(boundary: Waited): void {
    const now = performance.now()
    if (this.#waiting === 0) this.#since = now
    this.#waiting += 1
    this.#sums[boundary].count += 1
    this.#sums[boundary].ms -= now
  }

  #end(boundary: Waited): void {
    const now = performance.now()
    this.#waiting -= 1
    if (this.#waiting === 0) this.#totalMs += now - this.#since
    this.#sums[boundary].ms += now
  }
}

function emptySums(): Record<Waited, { count: number; ms: number }> {
  return { request: { count: 0, ms: 0 }, tool: { count: 0, ms: 0 }, step: { count: 0, ms: 0 } }
}
