/** The vocabulary of the policy. Types only: nothing here runs. */
// First, or the augmentation below would hide cordis' own.
import type {} from '@deepseek-ai/cordis'
import type { Decision, CheckpointStrategy } from './strategy.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { BOUNDARIES, FLUSH_OUTCOMES, OUTCOMES, RECOVERIES } from './semconv.ts'

/** Where the agent may have to wait; at `turn` it never does. */
export type Boundary = (typeof BOUNDARIES)[number]
/** What became of the guarded thing. */
export type Outcome = (typeof OUTCOMES)[number]
/** What became of the write. `pending`: the barrier settled first. `none`: no flush was asked for. */
export type FlushOutcome = (typeof FLUSH_OUTCOMES)[number]
/** `unknown`: the call was recorded, its result was not. `not_started`: not even the call was recorded. */
export type Recovery = (typeof RECOVERIES)[number]

/** Who waits, and for what: the part of a barrier that never changes. */
export interface BarrierSubject {
  readonly boundary: Boundary
  /** Whether the boundary releases something that leaves the machine: `request` and `tool`. */
  readonly guarded: boolean
  readonly sessionId: string
  /** Id of the agent, where the host names one at or before this barrier. */
  readonly agentId?: string
  /** Preset that composed the agent, from the session header. */
  readonly agentPreset?: string
  /** 0 for a top-level agent, 1 for its subagents, and so on. */
  readonly delegationDepth: number
  readonly turn?: number
  readonly step?: number
  /** `tool` only: id the model gave the call. */
  readonly callId?: string
  /** `tool` only. */
  readonly toolName?: string
  /** `request` only. */
  readonly model?: string
  /** `request` only: `session-title`, `compaction`; absent for the conversation itself. */
  readonly purpose?: string
  /** Events after the session's last good flush when the barrier opened; an upper bound, for a backend also writes behind. */
  readonly pendingEvents: number
}

/** What a strategy is asked about. Frozen. */
export type Barrier = BarrierSubject

/** One barrier after it settled: frozen, JSON-safe, holds no live object. */
export interface SettledBarrier extends BarrierSubject {
  readonly kind: 'barrier'
  /** Serial number in this policy instance. */
  readonly id: number
  /** Wall clock when the barrier opened, milliseconds since the epoch. */
  readonly openedAt: number
  readonly outcome: Outcome
  readonly flushOutcome: FlushOutcome
  /** Strategy that decided. */
  readonly strategy: string
  /** What was done, after the policy's own rules. */
  readonly decision: Decision['kind']
  /** The strategy's reason for a `skip`. */
  readonly reason?: string
  /** Set when the policy did something else than the strategy said. */
  readonly overruled?: 'guarded' | 'threw' | 'invalid'
  /** Whether a guarded boundary was released without a confirmed durable log. */
  readonly unguarded: boolean
  /** Session events newly covered by this barrier's flush. */
  readonly events: number
  /** Time the agent waited, in milliseconds, monotonic clock. */
  readonly durationMs: number
  /** Age of the flush when the barrier settled, in milliseconds; absent without a flush. */
  readonly flushMs?: number
  /** Another barrier's record already carries this flush. */
  readonly sharedFlush: boolean
  /** Class of the failure, from the closed set in semconv.ts. */
  readonly errorType?: string
  readonly traceId?: string
  readonly spanId?: string
}

/** One call that crash recovery answered, seen when its session was resumed. */
export interface RecoveredCall {
  readonly kind: 'recovered'
  readonly recovery: Recovery
  readonly sessionId: string
  readonly callId: string
  readonly turn: number
  readonly step: number
}

/** What observers receive. */
export type CheckpointRecord = SettledBarrier | RecoveredCall

/** One barrier that has not settled. */
export interface OpenBarrier extends BarrierSubject {
  readonly id: number
  readonly strategy: string
  /** Milliseconds since the barrier opened, monotonic clock. */
  readonly ageMs: number
  /** Whether the agent waits; false for a write that was started and left to run. */
  readonly waiting: boolean
}

declare module '@deepseek-ai/cordis' {
  interface Context {
    /** Settled and open barriers, provided by the checkpoint policy. */
    checkpoints: Checkpoints
    /** Decides what a barrier does; provided by a strategy plugin, optional. */
    checkpointStrategy: CheckpointStrategy
  }
}
