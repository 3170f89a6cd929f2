/** What a soak must show: two sides that counted the same, gauges at rest, and a heap that does not grow. */
import type { CheckpointRecord } from '../../src/index.ts'
import { noCounts, type Counts } from './soak-observer.ts'

/** Add what one record says. */
export function fromRecords(counts: Counts, record: CheckpointRecord): void {
  if (record.kind !== 'barrier') return
  const { boundary, outcome } = record
  if (record.flushMs !== undefined && !record.sharedFlush) counts.flushes += 1
  if (boundary === 'tool' && outcome === 'dispatched') counts.bodies += 1
  if (boundary === 'tool' && outcome === 'aborted') counts.abortedCalls += 1
  if (boundary === 'request' && outcome === 'dispatched') counts.requests += 1
  // A step or turn whose write was only started goes on: the failure is told, nobody is refused.
  if (record.errorType === undefined || outcome === 'dispatched') return
  if (boundary === 'step') counts.rejectedSteps += 1
  if (boundary === 'tool') counts.rejectedTools += 1
  if (boundary === 'request') counts.rejectedRequests += 1
}

/** The same from an exposition, and what its gauges say that is not rest. */
export function fromScrape(body: string): { counts: Counts; violations: string[] } {
  const sum = (name: string, ...labels: readonly string[]) =>
    body
      .split('\n')
      .filter((line) => new RegExp(`^${name}[{ ]`).test(line) && labels.every((label) => line.includes(label)))
      .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
  const barriers = (boundary: string, outcome: string) =>
    sum('dsh_checkpoint_barrier_duration_seconds_count', `boundary="${boundary}"`, `outcome="${outcome}"`)
  const refused = (boundary: string) => barriers(boundary, 'rejected') + barriers(boundary, 'timeout')
  const counts: Counts = {
    ...noCounts(),
    flushes: sum('dsh_checkpoint_flush_duration_seconds_count'),
    bodies: barriers('tool', 'dispatched'),
    requests: barriers('request', 'dispatched'),
    abortedCalls: sum('dsh_checkpoint_aborted_before_dispatch_total'),
    rejectedSteps: refused('step'),
    rejectedTools: refused('tool'),
    rejectedRequests: refused('request'),
  }
  const atRest = [
    'dsh_checkpoint_barrier_active',
    'dsh_checkpoint_barrier_oldest_age_seconds',
    'dsh_checkpoint_unguarded_total',
    'dsh_checkpoint_strategy_faults_total',
  ]
  const violations = atRest.flatMap((name) => (sum(name) === 0 ? [] : [`${name} is ${sum(name)} at the end`]))
  return { counts, violations }
}

/** Where two sides do not agree, in sentences. */
export function disagreements(side: string, observed: Counts, measured: Counts): string[] {
  return (Object.keys(observed) as (keyof Counts)[]).flatMap((key) =>
    observed[key] === measured[key] ? [] : [`${key}: the observer counted ${observed[key]}, ${side} ${measured[key]}`],
  )
}

/** Growth of the heap after garbage collection that still counts as flat, from the second quarter of the run to the last. */
export const FLAT = { ratio: 1.1, slackMiB: 4 } as const

/** @returns a sentence when the heap is not flat. The first quarter is left out: caches and code warm up in it. */
export function isFlat(heapMiB: readonly number[]): string | undefined {
  const quarter = Math.floor(heapMiB.length / 4)
  const early = median(heapMiB.slice(quarter, 2 * quarter))
  const late = median(heapMiB.slice(-quarter))
  if (late <= early * FLAT.ratio + FLAT.slackMiB) return undefined
  return `the heap grew from ${early.toFixed(1)} to ${late.toFixed(1)} MiB (medians of the second and the last quarter)`
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
