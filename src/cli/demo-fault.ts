/** Faults that the demo stages: a listener of `session/flush` beside the real backend, broken for one flush at a time. */
import type { Context } from '@deepseek-ai/cordis'
import type {} from '@deepseek-ai/dsh-session'

/** A flush that does not end until it is let go. */
export interface Hang {
  /** From now on the next flush hangs. */
  arm(): void
  /** Resolves when a flush hangs. */
  readonly hanging: Promise<void>
  /** Whether a flush hangs now. */
  pending(): boolean
  /** Let it go. */
  release(): void
}

/** A plugin that breaks the next flush on demand; all others pass. */
export class StagedFault {
  readonly name = 'staged-fault'
  readonly inject = ['sessions']
  #next: (() => Promise<void>) | undefined

  readonly apply = (ctx: Context): void => {
    ctx.on('session/flush', () => {
      const next = this.#next
      this.#next = undefined
      return next?.()
    })
  }

  /** A hang, not yet armed. */
  hang(): Hang {
    const seen = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    let pending = false
    return {
      arm: () => {
        this.#next = () => {
          pending = true
          seen.resolve()
          return end.promise
        }
      },
      hanging: seen.promise,
      pending: () => pending,
      release: () => {
        pending = false
        end.resolve()
        this.disarm()
      },
    }
  }

  /** From now on the next flush is rejected as a full disk rejects one. */
  reject(): void {
    this.#next = () => Promise.reject(Object.assign(new Error(STAGED_MESSAGE), { code: STAGED_CODE }))
  }

  /** What was staged and did not come to pass is forgotten. */
  disarm(): void {
    this.#next = undefined
  }
}

/** The staged rejection. */
export const STAGED_CODE = 'ENOSPC'
export const STAGED_MESSAGE = 'no space left on device (staged)'
