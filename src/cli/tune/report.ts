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
import { createPredictor, levelOf, type Level, type Predictor } from './predict.ts'
import { barriersOf } from './shape.ts'

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
  readonly logs: readonly {
    readonly path: string
    readonly version: number
    readonly turns: number
    readonly unfinished: number
    readonly torn: boolean
  }[]
  readonly skipped: FoundLogs['skipped']
  readonly absent: readonly string[]
  readonly turns: number
  readonly barriers: number
  readonly replay: Pick<Replay, 'blocks' | 'sampledTurns' | 'capMs' | 'hostMsPerStep'> & {
    readonly assemblyMs: number
    readonly seconds: number
  }
  readonly level: Level
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
  around: {
    readonly folder: string
    readonly sync: SyncReport
    readonly absent: readonly string[]
    readonly seconds: number
    readonly assemblyMs: number
  },
): TuneReport {
  const { seconds, assemblyMs, ...rest } = around
  const turns = found.logs.flatMap((log) => log.turns)
  const base = result.again.variant
  const once = samplesOf(result.replayed, base)
  const noise = estimate(ratios(result.again.samples, once))
  // Both passes of a block: one alone would put its own noise into every ratio.
  const baseSamples = once.map((sample, block) => Math.sqrt(sample * (result.again.samples[block] ?? sample)))
  const level = levelOf(turns, median(baseSamples), result.steps, base)
  const predict = createPredictor(turns, level, result.hostMsPerStep)
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
    logs: found.logs.map(({ path, version, turns: own, unfinished, torn }) => ({
      path,
      version,
      turns: own.length,
      unfinished,
      torn,
    })),
    skipped: found.skipped,
    turns: turns.length,
    barriers: turns.reduce((sum, turn) => sum + barriersOf(turn), 0),
    replay: { blocks, sampledTurns, capMs, hostMsPerStep, assemblyMs, seconds },
    level,
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
