/** What the inspector knows, as its page and `/api/state` get it. Types only: nothing here runs. */
import type {
  Boundary,
  FlushOutcome,
  OpenBarrier,
  Outcome,
  RecoveredCall,
  Recovery,
  SettledBarrier,
} from '../barrier.ts'
import type { CheckpointState } from '../checkpoints.ts'
import type { Decision } from '../strategy.ts'

/** Counts and durations of one boundary since the inspector was loaded. Durations in milliseconds. */
export interface BoundaryStats {
  readonly outcomes: Record<Outcome, number>
  readonly flushOutcomes: Record<FlushOutcome, number>
  /** Time that agents waited. */
  readonly waits: Distribution
  /** Time that flushes took, each counted once. */
  readonly flushes: Distribution
}

/** A histogram. */
export interface Distribution {
  /** Values per bucket: up to each of {@link InspectorState.bucketsSeconds}, and one more beyond the last. */
  readonly counts: number[]
  count: number
  sumMs: number
  maxMs: number
}

/** What one strategy decided, after the policy's own rules. */
export interface StrategyStats {
  readonly name: string
  readonly decisions: Record<Decision['kind'], number>
  readonly overruled: Record<NonNullable<SettledBarrier['overruled']>, number>
  /** Requests and tool calls released without a confirmed durable log. */
  unguarded: number
  /** Reasons of its skips, the first few; the rest under `_OTHER`. */
  readonly reasons: Record<string, number>
}

/** Failures of one class. */
export interface FailureStats {
  readonly errorType: string
  count: number
  /** When the last one was seen, milliseconds since the epoch. */
  lastAt: number
  last: SettledBarrier
}

/** A recovered call, and when it was seen, milliseconds since the epoch. */
export interface SeenRecovery extends RecoveredCall {
  readonly seenAt: number
}

/** Everything but the lists of single barriers. */
export interface InspectorSummary {
  /** Raised when a field changes its meaning or goes away. */
  readonly version: 1
  /** Another one after each load of the plugin: counts began at 0 again. */
  readonly instance: string
  readonly pid: number
  /** Wall clock when the inspector was loaded, and now; milliseconds since the epoch. */
  readonly startedAt: number
  readonly now: number
  /** Age at which an open barrier counts as stuck, in milliseconds. */
  readonly stuckAfterMs: number
  readonly allowUnguarded: boolean
  readonly gauges: CheckpointState
  /** Barriers open now, oldest first, at most {@link InspectorBounds.open}; `gauges.active` has their true number. */
  readonly open: readonly OpenBarrier[]
  /** Barriers that settled since `startedAt`. */
  readonly settled: number
  readonly bucketsSeconds: readonly number[]
  readonly boundaries: Readonly<Record<Boundary, BoundaryStats>>
  readonly strategies: readonly StrategyStats[]
  /** Newest first. */
  readonly failures: readonly FailureStats[]
  readonly recovered: Readonly<Record<Recovery, number>>
  readonly bounds: InspectorBounds
}

/** How much is kept of each list. */
export interface InspectorBounds {
  readonly open: number
  readonly last: number
  readonly slowest: number
  readonly recoveredCalls: number
}

/** Everything. */
export interface InspectorState extends InspectorSummary {
  /** Settled last, newest first. */
  readonly last: readonly SettledBarrier[]
  /** Waited longest, longest first. */
  readonly slowest: readonly SettledBarrier[]
  /** Newest first. */
  readonly recoveredCalls: readonly SeenRecovery[]
}

/** What changed since the message before it. `last` holds the new ones alone; an absent list did not change. */
export interface InspectorUpdate extends InspectorSummary {
  readonly last: readonly SettledBarrier[]
  readonly slowest?: readonly SettledBarrier[]
  readonly recoveredCalls?: readonly SeenRecovery[]
}
