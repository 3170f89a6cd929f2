/** Measures every variant under every workload, in shuffled rounds of one run. */
import { join } from 'node:path'
import { shuffled } from './statistics.ts'
import { Stand } from './stand.ts'
import type { OptionalParts, Setting, StrategyName, Variant } from './variants.ts'
import { isSameSetting, nameOf } from './variants.ts'
import { scriptOf, type Workload } from './workloads.ts'
import type { Workspace } from './workspace.ts'

/** What is measured, and how often. */
export interface BenchPlan {
  readonly strategies: readonly StrategyName[]
  readonly settings: readonly Setting[]
  readonly workloads: readonly Workload[]
  readonly rounds: number
  /** Steps with calls in one turn. */
  readonly steps: number
}

/** One variant under one workload. */
export interface Cell {
  readonly variant: Variant
  readonly workload: Workload
  /** Milliseconds waited per step, one figure per round. */
  readonly samples: number[]
}

/** All samples of a run. */
export interface BenchRun {
  readonly cells: readonly Cell[]
  /** The first variant once more, per workload: what differs is noise. */
  readonly again: readonly Cell[]
  readonly seconds: number
}

/**
 * Run the plan.
 * @param progress - told before each turn: part done, and what comes.
 */
export async function runBench(
  plan: BenchPlan,
  parts: OptionalParts,
  { dir, signal }: Workspace,
  progress: (done: number, what: string) => void,
): Promise<BenchRun> {
  const startedAt = performance.now()
  const stands: Stand[] = []
  try {
    const cells: (Cell & { readonly stand: Stand })[] = []
    const again: typeof cells = []
    for (const variant of variantsOf(plan)) {
      signal.throwIfAborted()
      const stand = await Stand.create(variant, join(dir, String(stands.length)), parts)
      stands.push(stand)
      const own = () => plan.workloads.map((workload) => ({ variant, workload, stand, samples: [] }))
      cells.push(...own())
      if (stands.length === 1) again.push(...own())
    }
    const all = (plan.rounds + 1) * (cells.length + again.length)
    let done = 0
    // The first round warms up and is not counted.
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const cell of shuffled([...cells, ...again])) {
        signal.throwIfAborted()
        progress(done / all, `${cell.workload.id}: ${nameOf(cell.variant)}`)
        const script = scriptOf(cell.workload, plan.steps)
        const { totalMs } = await cell.stand.measure(script)
        if (round > 0) cell.samples.push(totalMs / script.steps.length)
        done += 1
      }
    }
    const bare = ({ variant, workload, samples }: Cell): Cell => ({ variant, workload, samples })
    return { cells: cells.map(bare), again: again.map(bare), seconds: (performance.now() - startedAt) / 1_000 }
  } finally {
    for (const stand of stands) await stand.dispose()
  }
}

/** Every strategy under every setting; first the one that others are held against. */
function variantsOf({ strategies, settings }: BenchPlan): Variant[] {
  return settings.flatMap((setting) => strategies.map((strategy) => ({ strategy, ...setting })))
}

/** Find a cell. */
export function cellOf(cells: readonly Cell[], workload: Workload, variant: Variant): Cell | undefined {
  return cells.find(
    (cell) =>
      cell.workload === workload && cell.variant.strategy === variant.strategy && isSameSetting(cell.variant, variant),
  )
}
