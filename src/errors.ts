/** The policy's own rejections, and the class of anybody's failure. */
import type { Boundary } from './barrier.ts'
import { OTHER, STORAGE_ERRORS } from './semconv.ts'

/** Base of the rejections this policy makes itself; the host's own pass through unchanged. */
export class CheckpointError extends Error {
  override name = 'CheckpointError'
  /** Machine-readable reason. */
  readonly code: 'CHECKPOINT_TIMEOUT' | 'CHECKPOINT_UNCONFIRMED' | 'CHECKPOINT_UNLOADED'

  constructor(code: CheckpointError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** A request or call met the policy after it was unloaded, or while it was. */
export function unloadedError(boundary: Boundary): CheckpointError {
  return new CheckpointError(
    'CHECKPOINT_UNLOADED',
    `the checkpoint policy (dsh-checkpoint-otel) was unloaded before this ${boundary} was durable; it was not run`,
  )
}

/** A flush resolved in which nobody took part, and the configuration asks for more. */
export function unconfirmedError(boundary: Boundary): CheckpointError {
  return new CheckpointError(
    'CHECKPOINT_UNCONFIRMED',
    `no persistence backend confirmed that the session log is durable (checkpoint ${boundary})`,
  )
}

/** A barrier hit its limit. */
export function timeoutError(boundary: Boundary, waitedMs: number): CheckpointError {
  return new CheckpointError(
    'CHECKPOINT_TIMEOUT',
    `the session log was not durable within ${Math.round(waitedMs)} ms (checkpoint ${boundary})`,
  )
}

const storageErrors: ReadonlySet<string> = new Set(STORAGE_ERRORS)
/** A cause chain deeper than this is not a storage error anybody wrapped on purpose. */
const MAX_CAUSES = 8

/**
 * Class of a failure for `error.type`: the first storage errno on the error, its causes or its aggregated errors,
 * else `_OTHER`. Never the message.
 * @param error - whatever was thrown.
 */
export function errorTypeOf(error: unknown): string {
  const queue: unknown[] = [error]
  for (let index = 0; index < queue.length && index < MAX_CAUSES; index += 1) {
    const candidate = queue[index]
    if (typeof candidate !== 'object' || candidate === null) continue
    try {
      const { code, cause, errors } = candidate as { code?: unknown; cause?: unknown; errors?: unknown }
      if (typeof code === 'string' && storageErrors.has(code)) return code
      if (cause !== undefined) queue.push(cause)
      if (Array.isArray(errors)) queue.push(...(errors as unknown[]).slice(0, MAX_CAUSES))
    } catch {
      // A getter on a foreign error threw: its class cannot be known.
      return OTHER
    }
  }
  return OTHER
}
