/** From ratios to milliseconds and shares of the recorded turns. */
import { mean, quantile } from 'simple-statistics'
import type { Estimate } from '../bench/statistics.ts'
import type { Variant } from '../bench/variants.ts'
import type { StepWaits } from './replay.ts'
import { barriersOf, type TurnShape } from './shape.ts'

/** How long a barrier takes. */
export interface Level {
  /** Waiting per barrier under the recorded variant, in milliseconds: what predictions start from. */
  readonly perBarrierMs: number
  /** The same when and where the turns were recorded: what their time includes. */
  readonly recordedMs: number
  /** `both`: half way between the logs and the replay. `replay`: the logs tell nothing, or of another disk. */
  readonly from: 'both' | 'replay'
  /** Waits in the logs to waits in the replay; absent where the logs do not tell. */
  readonly pace?: number
}

/** Fewest steps with a gap that say anything: events are stamped in whole milliseconds. */
const MIN_STEPS = 20
/** Gaps above this quantile are cut to it: a turn that waited a second once is not a typical one. */
const CUT = 0.9
/** Within this the logs are of this disk, at another hour; beyond it of another. */
const SAME_DISK = { least: 0.2, most: 5 } as const

/**
 * Find the level. Before `step/start` lies a barrier and little else, so that a log tells how long its own barriers
 * took. It tells of the hours it was recorded in and of one boundary, the replay of its own minute and of all: the
 * geometric mean is nearer to what comes than either.
 * @param replayedMs - waiting per barrier in the replay.
 */
export function levelOf(
  turns: readonly TurnShape[],
  replayedMs: number,
  steps: StepWaits,
  { strategy }: Variant,
): Level {
  const gaps = turns.flatMap((turn) => turn.steps.map((step) => step.barrierMs))
  const waitsAtSteps = strategy !== 'coalesced' && strategy !== 'pipelined'
  if (!waitsAtSteps || gaps.length < MIN_STEPS || steps.waitMs <= 0)
    return { perBarrierMs: replayedMs, recordedMs: replayedMs, from: 'replay' }
  const most = quantile(gaps, CUT)
  const waitMs = mean(gaps.map((ms) => Math.min(ms, most))) - steps.besidesMs
  const pace = Math.max(0, waitMs) / steps.waitMs
  const recordedMs = Math.max(0, waitMs) * steps.perBarrier
  if (pace < SAME_DISK.least || pace > SAME_DISK.most)
    return { perBarrierMs: replayedMs, recordedMs, from: 'replay', pace }
  return { perBarrierMs: Math.sqrt(recordedMs * replayedMs), recordedMs, from: 'both', pace }
}

/** What a ratio to the recorded variant means for the recorded turns. */
export type Predictor = (ratio: Estimate) => { readonly waitedPerTurnMs: Estimate; readonly share: Estimate }

/** The time the turns took, less the waiting they had, plus the waiting they would have. */
export function createPredictor(
  turns: readonly TurnShape[],
  { perBarrierMs, recordedMs }: Level,
  hostMsPerStep: number,
): Predictor {
  const barriers = turns.reduce((sum, turn) => sum + barriersOf(turn), 0)
  const waitedMs = barriers * perBarrierMs
  const durationMs = turns.reduce((sum, turn) => sum + turn.durationMs, 0)
  const steps = turns.flatMap((turn) => turn.steps)
  // Gaps without a barrier in them, and the host's own work: there cannot have been less.
  const leastMs = steps.reduce(
    (sum, { assemblyMs, streamMs }) => sum + assemblyMs + streamMs,
    steps.length * hostMsPerStep,
  )
  const workMs = Math.max(durationMs - barriers * recordedMs, leastMs)
  const each = ({ median, low, high }: Estimate, figure: (ratio: number) => number): Estimate => ({
    median: figure(median),
    low: figure(low),
    high: figure(high),
  })
  return (ratio) => ({
    waitedPerTurnMs: each(ratio, (one) => (waitedMs * one) / turns.length),
    share: each(ratio, (one) => (waitedMs * one) / (workMs + waitedMs * one)),
  })
}
