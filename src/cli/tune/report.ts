/** From replayed waits to a recommendation. JSON-safe. */
import { SCOPE_VERSION } from '../../semconv.ts'
import { findingOf } from '../bench/report.ts'
import { estimate, isSteady, median, ratios, type Estimate } from '../bench/statistics.ts'
import { nameOf, type Variant } from '../bench/variants.ts'
import type { SyncReport } from '../bench/fsync.ts'
import { effortOf, meaningOf } from './meaning.ts'
import { patchOf } from './patch.ts'
import type { FoundLogs } from './find.ts'
import type { Replay, Replayed } from './replay.ts'
import { barriersOf, type TurnShape } from './shape.ts'

/** One variant as the recorded turns would have seen it. */
export interface Candidate extends Variant {
  /** Waiting to that of the recorded variant. */
  readonly ratio: Estimate
  /** Waited in a turn, in milliseconds. */
  readonly waitedPerTurnMs: Estimate
  /** Waiting in the time of a turn, 0 to 1. */
  readonly share: Estimate
  readonly finding: 'less' | 'more' | 'unsure' | 'recorded'
  /** Whether every guarded call and request still waits for its own durable record. */
  readonly safe: boolean
  readonly notes: readonly string[]
  readonly patch: string
}

/** The whole report. */
export interface TuneReport {
  readonly kind: 'tune'
  readonly version: string
  readonly node: string
  readonly folder: string
  readonly sync: SyncReport
  readonly logs: readonly { readonly path: string; readonly version: number; readonly turns: number; readonly unfinished: number; readonly torn: boolean }[]
  readonly skipped: FoundLogs['skipped']
  readonly absent: readonly string[]
  readonly turns: number
  readonly barriers: number
  readonly replay: Pick<Replay, 'blocks' | 'sampledTurns' | 'capMs' | 'hostMsPerStep'> & { readonly pace: number; readonly seconds: number }
  /** The recorded variant against itself. */
  readonly noise: Estimate
  readonly steady: boolean
  readonly recorded: Candidate
  /** All variants, least waiting first. */
  readonly ranked: readonly Candidate[]
  /** Absent where nothing waits less with certainty. */
  readonly recommended?: Candidate
}

/** Compute the report. */
export function createTuneReport(
  found: FoundLogs,
  result: Replay,
  around: { readonly folder: string; readonly sync: SyncReport; readonly absent: readonly string[]; readonly seconds: number },
): TuneReport {
  const { seconds, ...rest } = around
  const turns = found.logs.flatMap((log) => log.turns)
  const base = result.again.variant
  const baseSamples = samplesOf(result.replayed, base)
  const noise = estimate(ratios(result.again.samples, baseSamples))
  const pace = paceOf(turns, result.stepWaitMs, base)
  const predict = createPredictor(turns, median([...baseSamples, ...result.again.samples]), result.hostMsPerStep, pace)
  const ranked = result.replayed
    .map(({ variant, samples }) => describe(variant, base, estimate(ratios(samples, baseSamples)), predict))
    .toSorted((a, b) => a.ratio.median - b.ratio.median)
  const recorded = ranked.find((candidate) => candidate.finding === 'recorded')
  if (recorded === undefined) throw new Error('the recorded variant is replayed')
  const steady = isSteady(noise)
  const { blocks, sampledTurns, capMs, hostMsPerStep } = result
  return {
    kind: 'tune',
    version: SCOPE_VERSION,
    node: process.version,
    ...rest,
    logs: found.logs.map(({ path, version, turns: own, unfinished, torn }) => ({ path, version, turns: own.length, unfinished, torn })),
    skipped: found.skipped,
    turns: turns.length,
    barriers: turns.reduce((sum, turn) => sum + barriersOf(turn), 0),
    replay: { blocks, sampledTurns, capMs, hostMsPerStep, pace, seconds },
    noise,
    steady,
    recorded,
    ranked,
    recommended: steady ? recommend(ranked, recorded) : undefined,
  }
}

function samplesOf(replayed: readonly Replayed[], variant: Variant): readonly number[] {
  return replayed.find((entry) => nameOf(entry.variant) === nameOf(variant))?.samples ?? []
}

function describe(variant: Variant, base: Variant, ratio: Estimate, predict: Predictor): Candidate {
  const isRecorded = nameOf(variant) === nameOf(base)
  const own = isRecorded ? { median: 1, low: 1, high: 1 } : ratio
  return {
    ...variant,
    ratio: own,
    ...predict(own),
    finding: isRecorded ? 'recorded' : findingOf(own),
    ...meaningOf(base, variant),
    patch: patchOf(base, variant),
  }
}

type Predictor = (ratio: Estimate) => Pick<Candidate, 'waitedPerTurnMs' | 'share'>

/** Bounds of {@link paceOf}: beyond them something else than a disk was slow. */
const PACE = { least: 0.1, most: 20 } as const
/** Longest gap taken for a barrier. */
const MAX_BARRIER_MS = 1_000

/**
 * How much longer a wait was where and when the turns were recorded than here and now, told by the gap before each
 * step: only its barrier lies in it. 1 where the recorded strategy does not wait there.
 */
export function paceOf(turns: readonly TurnShape[], stepWaitMs: number, { strategy }: Variant): number {
  const gaps = turns.flatMap(({ steps }) => steps.map((step) => step.barrierMs)).filter((ms) => ms <= MAX_BARRIER_MS)
  if (strategy === 'coalesced' || strategy === 'pipelined' || gaps.length === 0 || stepWaitMs <= 0) return 1
  const mean = gaps.reduce((sum, ms) => sum + ms, 0) / gaps.length
  return Math.min(PACE.most, Math.max(PACE.least, mean / stepWaitMs))
}

/**
 * What a ratio means for the recorded turns: the time they took, less the waiting that they had, plus the waiting they
 * would have.
 * @param perBarrierMs - waiting per barrier under the recorded variant on this disk.
 * @param pace - of the recorded waits to those; see {@link paceOf}.
 */
export function createPredictor(turns: readonly TurnShape[], perBarrierMs: number, hostMsPerStep: number, pace: number): Predictor {
  const waitedMs = turns.reduce((sum, turn) => sum + barriersOf(turn), 0) * perBarrierMs
  const durationMs = turns.reduce((sum, turn) => sum + turn.durationMs, 0)
  const steps = turns.flatMap((turn) => turn.steps)
  // Gaps without a barrier in them, and the host's own work: a log from a faster disk cannot have had less.
  const leastMs = steps.reduce((sum, { assemblyMs, streamMs }) => sum + assemblyMs + streamMs, steps.length * hostMsPerStep)
  const workMs = Math.max(durationMs - waitedMs * pace, leastMs)
  const each = ({ median, low, high }: Estimate, figure: (ratio: number) => number): Estimate => ({ median: figure(median), low: figure(low), high: figure(high) })
  return (ratio) => ({
    waitedPerTurnMs: each(ratio, (one) => (waitedMs * one) / turns.length),
    share: each(ratio, (one) => (waitedMs * one) / (workMs + waitedMs * one)),
  })
}

/** As good as the best, for a recommendation: more waiting than this is not made up for by a smaller change. */
const NEARLY = 1.1

/** Of what is surely better and gives up no guarantee, the best; of what is nearly as good, the smallest change. */
export function recommend(ranked: readonly Candidate[], recorded: Variant): Candidate | undefined {
  const better = ranked.filter((candidate) => candidate.safe && candidate.finding === 'less')
  const least = Math.min(...better.map(({ ratio }) => ratio.median))
  return better
    .filter(({ ratio }) => ratio.median <= least * NEARLY)
    .toSorted((a, b) => effortOf(recorded, a) - effortOf(recorded, b) || a.ratio.median - b.ratio.median)[0]
}
