/** Counts records and keeps the latest: memory is bounded by the constants here, whatever the agents do. */
import { randomUUID } from 'node:crypto'
import type { CheckpointRecord, OpenBarrier, SettledBarrier } from '../barrier.ts'
import type { CheckpointState, Checkpoints } from '../checkpoints.ts'
import * as sc from '../semconv.ts'
import { clip, clipped, Ring, Slowest } from './lists.ts'
import type {
  BoundaryStats,
  Distribution,
  FailureStats,
  InspectorBounds,
  InspectorState,
  InspectorSummary,
  SeenRecovery,
  StrategyStats,
} from './state.ts'

/** Entries kept of each list. With texts of at most 200 characters that is at most 3 MiB. */
export const BOUNDS: InspectorBounds = { open: 200, last: 500, slowest: 50, recoveredCalls: 50 }
/** Age at which an open barrier counts as stuck, as the policy's own default for naming it in the log. */
const STUCK_AFTER_MS = 5_000
const MAX_REASONS = 8
const MAX_REASON_LENGTH = 80

/** The inspector's memory. */
export class Recorder {
  readonly #checkpoints: Checkpoints
  readonly #instance = randomUUID()
  readonly #startedAt = Date.now()
  readonly #boundaries
  readonly #strategies = new Map<string, StrategyStats>()
  readonly #failures = new Map<string, FailureStats>()
  readonly #recovered = { unknown: 0, not_started: 0 }
  readonly last = new Ring<SettledBarrier>(BOUNDS.last)
  readonly slowest = new Slowest(BOUNDS.slowest)
  readonly recoveredCalls = new Ring<SeenRecovery>(BOUNDS.recoveredCalls)

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints
    const buckets = checkpoints.durationBucketsSeconds.length + 1
    const stats = (): BoundaryStats => ({
      outcomes: zeros(sc.OUTCOMES),
      flushOutcomes: zeros(sc.FLUSH_OUTCOMES),
      waits: distribution(buckets),
      flushes: distribution(buckets),
    })
    this.#boundaries = { step: stats(), request: stats(), tool: stats(), turn: stats() }
  }

  /** Take note of one settled barrier or recovered call. On the agent's path: keep it cheap. */
  record(record: CheckpointRecord): void {
    if (record.kind === 'recovered') {
      this.#recovered[record.recovery] += 1
      this.recoveredCalls.add({ ...clipped(record), seenAt: Date.now() })
      return
    }
    const kept = clipped(record)
    const stats = this.#boundaries[record.boundary]
    stats.outcomes[record.outcome] += 1
    stats.flushOutcomes[record.flushOutcome] += 1
    this.#measure(stats.waits, record.durationMs)
    if (record.flushMs !== undefined && !record.sharedFlush) this.#measure(stats.flushes, record.flushMs)
    this.#decided(record)
    if (record.errorType !== undefined) this.#failed(record.errorType, kept)
    this.last.add(kept)
    this.slowest.add(kept)
  }

  /** Values of now. */
  gauges(): CheckpointState {
    return clipped(this.#checkpoints.state())
  }

  /** Barriers open now, at most {@link BOUNDS.open}. */
  open(): OpenBarrier[] {
    return this.#checkpoints.open().slice(0, BOUNDS.open).map(clipped)
  }

  /** Everything but the lists of settled barriers and recovered calls. Live objects: serialise at once. */
  summary(): InspectorSummary {
    return {
      version: 1,
      instance: this.#instance,
      pid: process.pid,
      startedAt: this.#startedAt,
      now: Date.now(),
      stuckAfterMs: STUCK_AFTER_MS,
      allowUnguarded: this.#checkpoints.allowUnguarded,
      gauges: this.gauges(),
      open: this.open(),
      settled: this.last.added,
      bucketsSeconds: this.#checkpoints.durationBucketsSeconds,
      boundaries: this.#boundaries,
      strategies: [...this.#strategies.values()],
      failures: [...this.#failures.values()].sort((a, b) => b.lastAt - a.lastAt),
      recovered: this.#recovered,
      bounds: BOUNDS,
    }
  }

  /** Everything. */
  state(): InspectorState {
    return {
      ...this.summary(),
      last: this.last.newest(),
      slowest: this.slowest.entries,
      recoveredCalls: this.recoveredCalls.newest(),
    }
  }

  #measure(into: Distribution, valueMs: number): void {
    const bounds = this.#checkpoints.durationBucketsSeconds
    let bucket = 0
    // A value on a bound belongs below it, as in OpenTelemetry and Prometheus.
    while (bucket < bounds.length && valueMs > (bounds[bucket] ?? Infinity) * 1_000) bucket += 1
    into.counts[bucket] = (into.counts[bucket] ?? 0) + 1
    into.count += 1
    into.sumMs += valueMs
    into.maxMs = Math.max(into.maxMs, valueMs)
  }

  #decided({ strategy, decision, overruled, unguarded, reason }: SettledBarrier): void {
    const stats = this.#strategy(strategy)
    stats.decisions[decision] += 1
    if (overruled !== undefined) stats.overruled[overruled] += 1
    if (unguarded) stats.unguarded += 1
    if (reason !== undefined) increment(stats.reasons, clip(reason, MAX_REASON_LENGTH), MAX_REASONS)
  }

  #strategy(name: string): StrategyStats {
    const known = this.#strategies.get(clip(name))
    if (known !== undefined) return known
    if (this.#strategies.size >= sc.MAX_STRATEGY_NAMES && name !== sc.OTHER) return this.#strategy(sc.OTHER)
    const stats: StrategyStats = {
      name: clip(name),
      decisions: { flush: 0, start: 0, skip: 0 },
      overruled: { guarded: 0, threw: 0, invalid: 0 },
      unguarded: 0,
      // Its keys are anybody's words, `__proto__` among them.
      reasons: Object.create(null) as Record<string, number>,
    }
    this.#strategies.set(stats.name, stats)
    return stats
  }

  /** The classes are a closed set. */
  #failed(errorType: string, last: SettledBarrier): void {
    const known = this.#failures.get(errorType)
    if (known === undefined) this.#failures.set(errorType, { errorType, count: 1, lastAt: Date.now(), last })
    else Object.assign(known, { count: known.count + 1, lastAt: Date.now(), last })
  }
}

function zeros<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>
}

function distribution(buckets: number): Distribution {
  return { counts: Array.from({ length: buckets }, () => 0), count: 0, sumMs: 0, maxMs: 0 }
}

function increment(counts: Record<string, number>, key: string, limit: number): void {
  const counted = key in counts || Object.keys(counts).length < limit ? key : sc.OTHER
  counts[counted] = (counts[counted] ?? 0) + 1
}
