/**
 * The tool calls that the loop dispatches together, and the moment when one flush can serve them all.
 *
 * The loop records a call, awaits its policy and guards, dispatches it, and only then records the next; parallel
 * calls therefore reach their barriers one after another while none has finished. A flush begun when the last one
 * arrived covers every recorded call. A call that never arrives (denied, or waiting for a person's approval) must
 * not hold the others: it is struck off as soon as that is known, and the wait is bounded in any case. Calls that come
 * after a release gather anew.
 */
import type { LiveBarrier } from './live-barrier.ts'

/** A tool-call block of an assistant message, as far as it is read here. */
interface ToolCallBlock {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** Whether the host may run this call beside others; the agent is the one that makes it, for its tools may be its own. */
export type IsParallel = (call: { callId: string; name: string; arguments: unknown; agent: unknown }) => boolean

/**
 * Ids of the calls that may be dispatched together with `callId`, itself included: the run of parallel-safe calls
 * around it in the assistant message.
 * @param message - content of the assistant message that made the call.
 * @param agent - the agent that makes it.
 */
export function siblingsOf(
  message: readonly unknown[],
  callId: string,
  agent: unknown,
  isParallel: IsParallel,
): string[] {
  const calls = message.filter(isToolCall)
  const own = calls.findIndex((call) => call.id === callId)
  if (own === -1 || !parallel(calls[own])) return [callId]
  let first = own
  while (parallel(calls[first - 1])) first -= 1
  let end = own + 1
  while (parallel(calls[end])) end += 1
  return calls.slice(first, end).map((call) => call.id)

  function parallel(call: ToolCallBlock | undefined): boolean {
    if (call === undefined) return false
    return isParallel({ callId: call.id, name: call.name, arguments: parseArguments(call.arguments), agent })
  }
}

/** One run of parallel calls on their way to a shared flush. */
export class ToolBatch {
  readonly #callIds: ReadonlySet<string>
  /** Calls whose barrier is still to come. */
  readonly #missing: Set<string>
  readonly #waiting: LiveBarrier[] = []
  readonly #limit: number
  readonly #release: (barriers: readonly LiveBarrier[]) => void
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Calls that reached their barrier, in all. */
  #arrived = 0

  /**
   * @param callIds - the calls of the run, in the order of the message.
   * @param first - the first of them to arrive: the loop is past all that come before it.
   * @param limit - how many the loop runs at once: no more can arrive before one finishes.
   * @param release - flushes once for the barriers it is given; called again for those that come later.
   */
  constructor(
    callIds: readonly string[],
    first: string,
    limit: number,
    release: (barriers: readonly LiveBarrier[]) => void,
  ) {
    this.#callIds = new Set(callIds)
    this.#missing = new Set(callIds.slice(callIds.indexOf(first)))
    this.#limit = limit
    this.#release = release
  }

  /** Whether the call belongs to this run. */
  covers(callId: string): boolean {
    return this.#callIds.has(callId)
  }

  /**
   * A call reached its barrier.
   * @param waitMs - longest wait for its siblings, counted from the first arrival.
   */
  join(barrier: LiveBarrier, callId: string, waitMs: number): void {
    this.#missing.delete(callId)
    this.#arrived += 1
    this.#waiting.push(barrier)
    if (this.#missing.size === 0 || this.#arrived >= this.#limit) this.#go()
    else this.#timer ??= setTimeout(() => this.#go(), waitMs)
  }

  /**
   * A call will not come to its barrier soon, or has been there.
   * @param blocking - the loop itself waits for this call (a person is asked): no sibling can come before that ends.
   */
  strike(callId: string, blocking = false): void {
    if (this.#missing.delete(callId) && (blocking || this.#missing.size === 0)) this.#go()
  }

  /** A waiting call was aborted, timed out or unloaded. */
  leave(barrier: LiveBarrier): void {
    const index = this.#waiting.indexOf(barrier)
    if (index === -1) return
    this.#waiting.splice(index, 1)
    if (this.#waiting.length === 0) this.#disarm()
  }

  #go(): void {
    this.#disarm()
    // One that was aborted in this very tick has not left yet.
    this.#release(this.#waiting.splice(0).filter((barrier) => barrier.wokenBy === undefined))
  }

  #disarm(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

function isToolCall(block: unknown): block is ToolCallBlock {
  return typeof block === 'object' && block !== null && (block as { type?: unknown }).type === 'tool-call'
}

/** As the host reads model arguments: JSON where it parses, the text otherwise. */
function parseArguments(raw: string): unknown {
  try {
    return raw === '' ? {} : JSON.parse(raw)
  } catch {
    // Invalid JSON from a model is an ordinary answer; the host hands the text on as well.
    return raw
  }
}
