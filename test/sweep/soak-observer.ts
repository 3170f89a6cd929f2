/** Counts what happens at the host's own seams, without asking the policy: the other side of the comparison. */
import type { Context } from '@deepseek-ai/cordis'

/** Numbers of one run, the same words on both sides. */
export interface Counts {
  flushes: number
  bodies: number
  requests: number
  rejectedSteps: number
  rejectedTools: number
  rejectedRequests: number
  abortedCalls: number
}

/** No event yet. */
export const noCounts = (): Counts => ({
  flushes: 0,
  bodies: 0,
  requests: 0,
  rejectedSteps: 0,
  rejectedTools: 0,
  rejectedRequests: 0,
  abortedCalls: 0,
})

/**
 * A plugin that counts flushes where the host begins them, and outcomes outside every other hook.
 * Bodies and requests are counted in the tools and the adapter.
 */
export function observerPlugin(counts: Counts): object {
  return {
    name: 'independent-observer',
    apply(ctx: Context) {
      const outermost = { prepend: true } as const
      ctx.on('session/flush', () => void (counts.flushes += 1))
      ctx.on(
        'agent/pre-step',
        async ({ signal }, next) => {
          try {
            return await next()
          } catch (error) {
            // A cancelled step is thrown as the signal's own reason.
            if (error !== signal.reason) counts.rejectedSteps += 1
            throw error
          }
        },
        outermost,
      )
      ctx.on(
        'tools/execute',
        async (exec, next) => {
          try {
            const result = await next()
            if (result.error?.info?.code === 'ABORTED_BEFORE_DISPATCH') counts.abortedCalls += 1
            return result
          } catch (error) {
            counts.rejectedTools += 1
            throw error
          }
        },
        outermost,
      )
      ctx.on('llm/stream', (_options, next) => counted(next(), () => void (counts.rejectedRequests += 1)), outermost)
    },
  }
}

async function* counted<T>(stream: AsyncIterable<T>, failed: () => void): AsyncIterable<T> {
  try {
    yield* stream
  } catch (error) {
    failed()
    throw error
  }
}
