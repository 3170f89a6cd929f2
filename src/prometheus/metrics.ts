/** The telemetry contract as Prometheus families: records in, exposition out. */
import type { Boundary, CheckpointRecord, SettledBarrier } from '../barrier.ts'
import type { Checkpoints } from '../checkpoints.ts'
import * as sc from '../semconv.ts'
import { familyOf, labelOf, type Exposition } from './exposition.ts'

const BOUNDARY = labelOf(sc.ATTR_BOUNDARY)
const OUTCOME = labelOf(sc.ATTR_OUTCOME)
const FLUSH_OUTCOME = labelOf(sc.ATTR_FLUSH_OUTCOME)
const STRATEGY = labelOf(sc.ATTR_STRATEGY)
const RECOVERY = labelOf(sc.ATTR_RECOVERY)
const ERROR_TYPE = labelOf(sc.ATTR_ERROR_TYPE)

/** A wait from here on always gets an exemplar. */
const SLOW_MS = 50
/** Quiet time between two exemplars of ordinary barriers at one boundary. */
const EXEMPLAR_MS = 1_000

/** Counters, histograms and gauges of one policy. Every series exists at 0 before its first event. */
export class CheckpointMetrics {
  readonly #checkpoints: Checkpoints
  readonly #strategies = new Set<string>()
  /** When the next ordinary barrier of a boundary gets an exemplar, monotonic clock. */
  readonly #exemplarDue = new Map<Boundary, number>()
  readonly #barrierDuration
  readonly #flushDuration
  readonly #flushEvents
  readonly #rejections
  readonly #aborted
  readonly #unguarded
  readonly #strategyFaults
  readonly #recovered
  readonly #active
  readonly #oldestAge
  readonly #unflushedAge
  readonly #consecutiveFailures

  constructor(checkpoints: Checkpoints, exposition: Exposition) {
    this.#checkpoints = checkpoints
    const { durationBucketsSeconds } = checkpoints
    this.#barrierDuration = exposition.histogram(familyOf(sc.METRIC_BARRIER_DURATION), durationBucketsSeconds)
    this.#flushDuration = exposition.histogram(familyOf(sc.METRIC_FLUSH_DURATION), durationBucketsSeconds)
    this.#flushEvents = exposition.histogram(familyOf(sc.METRIC_FLUSH_EVENTS), sc.EVENT_BUCKETS)
    this.#rejections = exposition.counter(familyOf(sc.METRIC_REJECTIONS))
    this.#aborted = exposition.counter(familyOf(sc.METRIC_ABORTED))
    this.#unguarded = exposition.counter(familyOf(sc.METRIC_UNGUARDED))
    this.#strategyFaults = exposition.counter(familyOf(sc.METRIC_STRATEGY_FAULTS))
    this.#recovered = exposition.counter(familyOf(sc.METRIC_RECOVERED))
    this.#active = exposition.gauge(familyOf(sc.METRIC_ACTIVE))
    this.#oldestAge = exposition.gauge(familyOf(sc.METRIC_OLDEST_AGE))
    this.#unflushedAge = exposition.gauge(familyOf(sc.METRIC_UNFLUSHED_AGE))
    this.#consecutiveFailures = exposition.gauge(familyOf(sc.METRIC_CONSECUTIVE_FAILURES))
    // This endpoint lives and dies with one policy; a second one in the process has an endpoint of its own.
    exposition.gauge(familyOf(sc.METRIC_POLICY_ACTIVE)).set(1)
    this.#zero()
    this.#strategyName(checkpoints.state().strategy)
  }

  /** Count one settled barrier or recovered call. */
  record(record: CheckpointRecord): void {
    if (record.kind === 'recovered') {
      this.#recovered.inc({ labels: { [RECOVERY]: record.recovery } })
      return
    }
    const { boundary, outcome, flushMs, errorType, traceId, spanId } = record
    const strategy = this.#strategyName(record.strategy)
    const exemplarLabels =
      traceId === undefined || spanId === undefined || !this.#deservesExemplar(record)
        ? undefined
        : { [sc.EXEMPLAR_TRACE_ID]: traceId, [sc.EXEMPLAR_SPAN_ID]: spanId }
    this.#barrierDuration.observe({
      labels: { [BOUNDARY]: boundary, [OUTCOME]: outcome, [STRATEGY]: strategy },
      value: record.durationMs / 1_000,
      exemplarLabels,
    })
    if (flushMs !== undefined && !record.sharedFlush) {
      const labels = { [BOUNDARY]: boundary, [FLUSH_OUTCOME]: record.flushOutcome }
      this.#flushDuration.observe({ labels, value: flushMs / 1_000, exemplarLabels })
      this.#flushEvents.observe({ labels: { [BOUNDARY]: boundary }, value: record.events })
    }
    if (errorType !== undefined) {
      this.#rejections.inc({ labels: { [BOUNDARY]: boundary, [ERROR_TYPE]: errorType }, exemplarLabels })
    }
    if (boundary === 'tool' && outcome === 'aborted') this.#aborted.inc({})
    if (record.unguarded) this.#unguarded.inc({ labels: { [BOUNDARY]: boundary, [STRATEGY]: strategy } })
    if (record.overruled === 'threw' || record.overruled === 'invalid') {
      this.#strategyFaults.inc({ labels: { [BOUNDARY]: boundary, [STRATEGY]: strategy } })
    }
  }

  /**
   * Whether the record's trace is worth a link: every one that did not go well or was slow, and of the others one a second
   * for each boundary. A scrape keeps one exemplar a bucket, and making one costs as much as counting.
   */
  #deservesExemplar({ boundary, outcome, flushOutcome, durationMs }: SettledBarrier): boolean {
    if (outcome !== 'dispatched' || flushOutcome === 'rejected' || durationMs >= SLOW_MS) return true
    const now = performance.now()
    if (now < (this.#exemplarDue.get(boundary) ?? 0)) return false
    this.#exemplarDue.set(boundary, now + EXEMPLAR_MS)
    return true
  }

  /** Read the gauges, and give a strategy that was mounted since its zeros; before each scrape. */
  refresh(): void {
    const state = this.#checkpoints.state()
    this.#strategyName(state.strategy)
    for (const boundary of sc.BOUNDARIES) this.#active.set({ [BOUNDARY]: boundary }, state.active[boundary])
    this.#oldestAge.set(state.oldestAgeMs / 1_000)
    this.#unflushedAge.set(state.unflushedOldestAgeMs / 1_000)
    this.#consecutiveFailures.set(state.consecutiveFailures)
  }

  /** A series that appears only with its first failure hides that failure from every increase(). */
  #zero(): void {
    this.#aborted.inc({ value: 0 })
    for (const recovery of sc.RECOVERIES) this.#recovered.inc({ labels: { [RECOVERY]: recovery }, value: 0 })
    for (const boundary of sc.BOUNDARIES) {
      this.#flushEvents.zero({ [BOUNDARY]: boundary })
      for (const flushOutcome of sc.FLUSH_OUTCOMES) {
        // No flush, no duration.
        if (flushOutcome !== 'none') this.#flushDuration.zero({ [BOUNDARY]: boundary, [FLUSH_OUTCOME]: flushOutcome })
      }
      for (const errorType of sc.ERROR_TYPES) {
        this.#rejections.inc({ labels: { [BOUNDARY]: boundary, [ERROR_TYPE]: errorType }, value: 0 })
      }
    }
  }

  /** The strategy's label: its name, up to a number of names, then the fold. */
  #strategyName(name: string): string {
    if (this.#strategies.has(name)) return name
    if (this.#strategies.size >= sc.MAX_STRATEGY_NAMES && name !== sc.OTHER) return this.#strategyName(sc.OTHER)
    this.#zeroStrategy(name)
    return name
  }

  #zeroStrategy(name: string): void {
    this.#strategies.add(name)
    for (const boundary of sc.BOUNDARIES) {
      for (const outcome of sc.OUTCOMES) {
        this.#barrierDuration.zero({ [BOUNDARY]: boundary, [OUTCOME]: outcome, [STRATEGY]: name })
      }
      this.#strategyFaults.inc({ labels: { [BOUNDARY]: boundary, [STRATEGY]: name }, value: 0 })
    }
    for (const boundary of sc.GUARDED_BOUNDARIES) {
      this.#unguarded.inc({ labels: { [BOUNDARY]: boundary, [STRATEGY]: name }, value: 0 })
    }
  }
}
