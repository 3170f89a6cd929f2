/** Figures of a benchmark run, and what may be concluded from them. JSON-safe. */
import { arch, cpus, loadavg, platform, release } from 'node:os'
import { SCOPE_VERSION } from '../../semconv.ts'
import type { SyncReport } from './fsync.ts'
import { cellOf, type BenchPlan, type BenchRun, type Cell } from './run.ts'
import { estimate, isSteady, ratios, type Estimate } from './statistics.ts'
import { nameOf, type Variant } from './variants.ts'

/** One variant under one workload. */
export interface BenchCell extends Variant {
  /** Waited per step, in milliseconds. */
  readonly waitedMs: Estimate
  /** To the first strategy of the plan under the same setting; absent for that strategy itself. */
  readonly ratio?: Estimate
  /** To the first strategy under the first setting: what most installations have. */
  readonly ratioToReference: Estimate
  /** Whether the waiting is less or more than the reference's, or neither can be said. */
  readonly finding: 'less' | 'more' | 'unsure' | 'reference'
}

/** One workload. */
export interface BenchWorkload {
  readonly id: string
  readonly title: string
  /** The reference against itself in the same rounds. */
  readonly noise: Estimate
  /** Whether the noise is small enough to conclude anything. */
  readonly steady: boolean
  readonly cells: readonly BenchCell[]
}

/** The whole report. */
export interface BenchReport {
  readonly kind: 'bench'
  readonly version: string
  readonly measuredAt: string
  readonly machine: {
    readonly node: string
    readonly platform: string
    readonly cpu: string
    readonly cpus: number
    readonly load: number
  }
  readonly folder: string
  readonly sync: SyncReport
  readonly rounds: number
  readonly steps: number
  readonly seconds: number
  readonly strategies: readonly string[]
  /** What others are held against. */
  readonly reference: string
  /** Parts that are not installed, and so not measured. */
  readonly absent: readonly string[]
  readonly workloads: readonly BenchWorkload[]
}

/** Compute the report. */
export function createBenchReport(
  plan: BenchPlan,
  run: BenchRun,
  around: { readonly folder: string; readonly sync: SyncReport; readonly absent: readonly string[] },
): BenchReport {
  const [strategy] = plan.strategies
  const [setting] = plan.settings
  if (strategy === undefined || setting === undefined) throw new Error('a plan has at least one variant')
  const reference: Variant = { strategy, ...setting }
  const processors = cpus()
  return {
    kind: 'bench',
    version: SCOPE_VERSION,
    measuredAt: new Date().toISOString(),
    machine: {
      node: process.version,
      platform: `${platform()} ${release()} ${arch()}`,
      cpu: processors[0]?.model ?? 'unknown',
      cpus: processors.length,
      load: loadavg()[0] ?? 0,
    },
    ...around,
    rounds: plan.rounds,
    steps: plan.steps,
    seconds: run.seconds,
    strategies: plan.strategies,
    reference: nameOf(reference),
    workloads: plan.workloads.map((workload) => {
      const base = cellOf(run.cells, workload, reference)?.samples ?? []
      const noise = estimate(ratios(cellOf(run.again, workload, reference)?.samples ?? [], base))
      const steady = isSteady(noise)
      const own = run.cells.filter((cell) => cell.workload === workload)
      return {
        id: workload.id,
        title: workload.title,
        noise,
        steady,
        cells: own.map((cell) =>
          describe(cell, base, cellOf(own, workload, { ...cell.variant, strategy })?.samples ?? [], reference),
        ),
      }
    }),
  }
}

function describe(
  { variant, samples }: Cell,
  base: readonly number[],
  sameSetting: readonly number[],
  reference: Variant,
): BenchCell {
  const ratioToReference = estimate(ratios(samples, base))
  return {
    ...variant,
    waitedMs: estimate(samples),
    ...(variant.strategy === reference.strategy ? {} : { ratio: estimate(ratios(samples, sameSetting)) }),
    ratioToReference,
    finding: nameOf(variant) === nameOf(reference) ? 'reference' : findingOf(ratioToReference),
  }
}

/** Only an interval that leaves 1 out says something. */
export function findingOf({ low, high }: Estimate): 'less' | 'more' | 'unsure' {
  if (high < 1) return 'less'
  return low > 1 ? 'more' : 'unsure'
}
