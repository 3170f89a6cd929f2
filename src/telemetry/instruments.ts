/** The instruments of the contract on one meter provider, and the gauges of all policies mounted in this process. */
import type { Counter, Histogram, Meter, MeterProvider } from '@opentelemetry/api'
import type { Boundary, Recovery } from '../barrier.ts'
import type { Checkpoints, CheckpointState } from '../checkpoints.ts'
import * as sc from '../semconv.ts'

/** Policies mounted in this process: gauges outlive one policy, because an SDK keeps exporting a removed callback's last value. */
const mounted = new Set<Checkpoints>()
/** The last policy went with its whole application: nothing is missing, and a last export must not say so. */
let ended = false

/** Count a policy among those mounted. */
export function policyMounted(policy: Checkpoints): void {
  mounted.add(policy)
  ended = false
}

/**
 * Take a policy off the gauges, which go on at 0.
 * @param appEnds - whether the application ends, not the policy alone.
 */
export function policyUnloaded(policy: Checkpoints, appEnds: boolean): void {
  mounted.delete(policy)
  ended = appEnds
}

/** The instruments of one meter provider. */
export interface Instruments {
  readonly barrierDuration: Histogram
  readonly flushDuration: Histogram
  readonly flushEvents: Histogram
  readonly rejections: Counter
  readonly aborted: Counter
  readonly unguarded: Counter
  readonly strategyFaults: Counter
  readonly recovered: Counter
  /** Make the counters that carry a strategy exist at zero. */
  zeroStrategy(name: string): void
}

/** One set for each provider and bucket list: callbacks must not pile up over reloads. */
const instrumentSets = new WeakMap<MeterProvider, Map<string, Instruments>>()

export function instrumentsOf(provider: MeterProvider, buckets: readonly number[]): Instruments {
  const key = buckets.join()
  let sets = instrumentSets.get(provider)
  if (sets === undefined) instrumentSets.set(provider, (sets = new Map()))
  let instruments = sets.get(key)
  if (instruments === undefined) {
    instruments = createInstruments(provider.getMeter(sc.SCOPE_NAME, sc.SCOPE_VERSION), buckets, sets.size === 0)
    sets.set(key, instruments)
  }
  return instruments
}

function createInstruments(meter: Meter, buckets: readonly number[], withGauges: boolean): Instruments {
  const optionsOf = (name: keyof typeof sc.INSTRUMENTS) => {
    const { unit, description } = sc.INSTRUMENTS[name]
    return { unit, description }
  }
  const histogram = (name: keyof typeof sc.INSTRUMENTS, bounds: readonly number[]) =>
    meter.createHistogram(name, { ...optionsOf(name), advice: { explicitBucketBoundaries: [...bounds] } })
  const counter = (name: keyof typeof sc.INSTRUMENTS) => meter.createCounter(name, optionsOf(name))

  const rejections = counter(sc.METRIC_REJECTIONS)
  const aborted = counter(sc.METRIC_ABORTED)
  const unguarded = counter(sc.METRIC_UNGUARDED)
  const strategyFaults = counter(sc.METRIC_STRATEGY_FAULTS)
  const recovered = counter(sc.METRIC_RECOVERED)
  // A series that appears only with its first failure hides that failure from every increase().
  aborted.add(0)
  for (const recovery of sc.RECOVERIES) recovered.add(0, { [sc.ATTR_RECOVERY]: recovery satisfies Recovery })
  for (const boundary of sc.BOUNDARIES) {
    for (const errorType of sc.ERROR_TYPES) {
      rejections.add(0, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_ERROR_TYPE]: errorType })
    }
  }
  if (withGauges) observeGauges(meter, optionsOf)
  return {
    barrierDuration: histogram(sc.METRIC_BARRIER_DURATION, buckets),
    flushDuration: histogram(sc.METRIC_FLUSH_DURATION, buckets),
    flushEvents: histogram(sc.METRIC_FLUSH_EVENTS, sc.EVENT_BUCKETS),
    rejections,
    aborted,
    unguarded,
    strategyFaults,
    recovered,
    zeroStrategy(name) {
      for (const boundary of sc.GUARDED_BOUNDARIES) {
        unguarded.add(0, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_STRATEGY]: name })
      }
      for (const boundary of sc.BOUNDARIES) {
        strategyFaults.add(0, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_STRATEGY]: name })
      }
    },
  }
}

function observeGauges(
  meter: Meter,
  optionsOf: (name: keyof typeof sc.INSTRUMENTS) => { unit: string; description: string },
): void {
  const gauge = (name: keyof typeof sc.INSTRUMENTS) => meter.createObservableGauge(name, optionsOf(name))
  const active = meter.createObservableUpDownCounter(sc.METRIC_ACTIVE, optionsOf(sc.METRIC_ACTIVE))
  const oldestAge = gauge(sc.METRIC_OLDEST_AGE)
  const unflushedAge = gauge(sc.METRIC_UNFLUSHED_AGE)
  const failures = gauge(sc.METRIC_CONSECUTIVE_FAILURES)
  const policies = gauge(sc.METRIC_POLICY_ACTIVE)
  // One callback for all, because each look goes over every live session.
  meter.addBatchObservableCallback(
    (result) => {
      const states = [...mounted].map((policy) => policy.state())
      for (const boundary of sc.BOUNDARIES) {
        const count = states.reduce((sum, state) => sum + state.active[boundary satisfies Boundary], 0)
        result.observe(active, count, { [sc.ATTR_BOUNDARY]: boundary })
      }
      const highest = (read: (state: CheckpointState) => number) => Math.max(0, ...states.map(read))
      result.observe(oldestAge, highest((state) => state.oldestAgeMs) / 1_000)
      result.observe(unflushedAge, highest((state) => state.unflushedOldestAgeMs) / 1_000)
      result.observe(
        failures,
        highest((state) => state.consecutiveFailures),
      )
      if (states.length > 0 || !ended) result.observe(policies, states.length)
    },
    [active, oldestAge, unflushedAge, failures, policies],
  )
}
