/** Event loop, garbage collection and start of the process: a slow barrier is often a busy loop. */
import { constants, monitorEventLoopDelay, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import * as sc from '../semconv.ts'
import type { Exposition } from './exposition.ts'

/** How often the event loop is asked for its delay, in milliseconds. */
const RESOLUTION_MS = 10

const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

/**
 * Watches the process for one mounted plugin, and stops with it. prom-client's own collectors cannot be stopped, and
 * three of its gauges are named like counters; these are measured here, under the same names.
 */
export class RuntimeMetrics {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  readonly #collections: PerformanceObserver
  readonly #lag

  constructor(exposition: Exposition) {
    const started = exposition.gauge({
      name: sc.FAMILY_PROCESS_START,
      help: 'Start time of the process since unix epoch in seconds.',
    })
    started.set(Math.round(Date.now() / 1_000 - process.uptime()))

    const lagOf = (statistic: keyof typeof sc.FAMILIES_EVENT_LOOP_LAG) =>
      exposition.gauge({
        name: sc.FAMILIES_EVENT_LOOP_LAG[statistic],
        help: `Delay of the event loop since the last scrape, ${statistic}.`,
      })
    this.#lag = { mean: lagOf('mean'), p50: lagOf('p50'), p90: lagOf('p90'), p99: lagOf('p99'), max: lagOf('max') }
    this.#delay.enable()

    const gc = exposition.histogram(
      { name: sc.FAMILY_GC_DURATION, help: 'Garbage collection duration by kind.', labelNames: [sc.LABEL_GC_KIND] },
      sc.GC_BUCKETS_SECONDS,
    )
    for (const kind of Object.values(GC_KINDS)) gc.zero({ [sc.LABEL_GC_KIND]: kind })
    this.#collections = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const kind = kindOf(entry)
        if (kind !== undefined) gc.observe({ labels: { [sc.LABEL_GC_KIND]: kind }, value: entry.duration / 1_000 })
      }
    })
    this.#collections.observe({ entryTypes: ['gc'] })
  }

  /** Read the event loop; before each scrape. */
  refresh(): void {
    const delay = this.#delay
    // Between two scrapers that come at once there is no sample, and no mean of nothing: the last values stand.
    if (delay.count === 0) return
    this.#lag.mean.set(lagSeconds(delay.mean))
    this.#lag.p50.set(lagSeconds(delay.percentile(50)))
    this.#lag.p90.set(lagSeconds(delay.percentile(90)))
    this.#lag.p99.set(lagSeconds(delay.percentile(99)))
    this.#lag.max.set(lagSeconds(delay.max))
    delay.reset()
  }

  dispose(): void {
    this.#delay.disable()
    this.#collections.disconnect()
  }
}

/** Node measures from one sample to the next, so an idle loop reads as the interval itself. */
function lagSeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1_000)
}

function kindOf(entry: PerformanceEntry): string | undefined {
  const { kind } = (entry as { detail?: { kind?: number } }).detail ?? {}
  return kind === undefined ? undefined : GC_KINDS[kind]
}
