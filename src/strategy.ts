/** The seam: what a strategy plugin provides, and how the policy reads its answer. */
import type { Barrier } from './barrier.ts'

/**
 * What a barrier does.
 *
 * - `flush`: wait for a flush. `group` shares one flush among the calls that the loop dispatches together;
 *   `delayMs` is then the longest wait for siblings, otherwise a fixed wait before the flush; `timeoutMs`
 *   rejects the barrier after that time (the smaller of it and the policy's own wins). Only tool calls are grouped:
 *   elsewhere a `group` decision is a plain flush.
 * - `start`: begin a flush and do not wait.
 * - `skip`: no flush.
 *
 * At a guarded boundary with events pending, `start` and `skip` become `flush` unless the policy is configured
 * with `allowUnguarded: true`; every such release is then counted.
 */
export type Decision =
  | { readonly kind: 'flush'; readonly group?: boolean; readonly delayMs?: number; readonly timeoutMs?: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'skip'; readonly reason: string }

/**
 * Decides what a barrier does. Mount one with `ctx.provide('checkpointStrategy', strategy)` from a plugin of your
 * own; unloading that plugin brings the default back.
 */
export interface CheckpointStrategy {
  /** Shown on spans, records and metrics; keep it constant. */
  readonly name: string
  /**
   * Synchronous, and cheap: it runs on the agent's path. A throw or an answer that is no {@link Decision} means
   * `flush`, said once and counted.
   */
  decide(barrier: Barrier): Decision
}

/** Longest `delayMs`: a strategy may trade latency for appends, not stall the agent. */
export const MAX_DELAY_MS = 1_000
/**
 * Wait for siblings when a `group` decision names no `delayMs`. Only a sibling whose policy takes this long makes
 * anybody wait this long, and the loop awaits the policies of a group one after another.
 */
export const DEFAULT_GROUP_DELAY_MS = 50
/** Largest delay of a Node timer; beyond it one fires at once. */
export const MAX_TIMER_MS = 2_147_483_647

/** The answer every barrier gets without a strategy: wait for a flush of its own. */
export const FLUSH: Decision = Object.freeze({ kind: 'flush' })

/** Same waiting as the stock policy. */
export const defaultStrategy: CheckpointStrategy = Object.freeze({ name: 'default', decide: () => FLUSH })

/**
 * Read a strategy's answer, each field once, into an object of our own: the strategy may go on changing its own.
 * @param value - whatever `decide` returned.
 * @returns the decision, or undefined where it is none.
 */
export function readDecision(value: unknown): Decision | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, group, delayMs, timeoutMs, reason } = value as Record<string, unknown>
  switch (kind) {
    case 'flush':
      return (group === undefined || typeof group === 'boolean') &&
        (delayMs === undefined || isWithin(delayMs, 0, MAX_DELAY_MS)) &&
        (timeoutMs === undefined || isWithin(timeoutMs, 1, MAX_TIMER_MS))
        ? { kind, group, delayMs, timeoutMs }
        : undefined
    case 'start':
      return { kind }
    case 'skip':
      return typeof reason === 'string' && reason !== '' ? { kind, reason } : undefined
    default:
      return undefined
  }
}

/**
 * Whether a provided service is a strategy.
 * @param value - the service found under `checkpointStrategy`.
 */
export function isStrategy(value: unknown): value is CheckpointStrategy {
  if (typeof value !== 'object' || value === null) return false
  try {
    const { name, decide } = value as Record<string, unknown>
    return typeof name === 'string' && name !== '' && typeof decide === 'function'
  } catch {
    // A getter that throws: whatever this is, it cannot be asked.
    return false
  }
}

function isWithin(value: unknown, low: number, high: number): value is number {
  return typeof value === 'number' && value >= low && value <= high
}
