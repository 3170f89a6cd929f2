/** What a run's barriers cost, from the policy's own records. */
import type { Boundary, Outcome, RecoveredCall, SettledBarrier } from '../barrier.ts'
import type { Checkpoints } from '../checkpoints.ts'
import { BOUNDARIES, OUTCOMES } from '../semconv.ts'

/** Barriers of one boundary and outcome. Waits in milliseconds, exact (nearest rank), not from buckets. */
export interface BarrierRow {
  readonly boundary: Boundary
  readonly outcome: Outcome
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

/** Collects records of one or more policies; as many as the run makes, which its flags bound. */
export class BarrierLog {
  readonly settled: SettledBarrier[] = []
  readonly recovered: RecoveredCall[] = []
  readonly #waits: { readonly from: number; readonly to: number }[] = []

  /**
   * Listen to a policy until it is unloaded.
   * @param checkpoints - absent where no policy of this package is mounted; then nothing is collected.
   */
  listen(checkpoints: Checkpoints | undefined): void {
    checkpoints?.observe((record) => {
      if (record.kind === 'recovered') {
        this.recovered.push(record)
        return
      }
      this.settled.push(record)
      // A record arrives as its barrier settles, so the wait ended now; its `openedAt` is too coarse for a share.
      const to = performance.now()
      if (record.boundary !== 'turn') this.#waits.push({ from: to - record.durationMs, to })
    })
  }

  /**
   * Time within a window in which at least one barrier waited: waits of parallel calls count once.
   * @param from - monotonic clock, milliseconds.
   * @param to - monotonic clock, milliseconds.
   */
  waitedMs(from: number, to: number): number {
    let waited = 0
    let covered = from
    // Waits are noted in the order of their ends.
    const recent = this.#waits.slice(this.#waits.findLastIndex((wait) => wait.to <= from) + 1)
    for (const wait of recent.toSorted((a, b) => a.from - b.from)) {
      const end = Math.min(wait.to, to)
      if (end <= covered) continue
      waited += end - Math.max(wait.from, covered)
      covered = end
    }
    return waited
  }

  /** One row per boundary and outcome that occurred, in the order of a turn. */
  rows(): readonly BarrierRow[] {
    return BOUNDARIES.flatMap((boundary) =>
      OUTCOMES.flatMap((outcome) => {
        const waits = this.settled
          .filter((record) => record.boundary === boundary && record.outcome === outcome)
          .map((record) => record.durationMs)
          .toSorted((a, b) => a - b)
        if (waits.length === 0) return []
        const [p50Ms, p95Ms, p99Ms] = [quantile(waits, 0.5), quantile(waits, 0.95), quantile(waits, 0.99)]
        return [{ boundary, outcome, count: waits.length, p50Ms, p95Ms, p99Ms }]
      }),
    )
  }
}

/**
 * Nearest-rank quantile: always a value that occurred.
 * @param sorted - ascending, not empty.
 * @param q - above 0, up to 1.
 */
export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN
}
