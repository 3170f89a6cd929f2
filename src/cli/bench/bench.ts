/** `bench` from its flags to its report. */
import { resolve } from 'node:path'
import { tmpdir } from 'node:os'
import type { BenchFlags } from '../bench-command.ts'
import { UsageError } from '../command.ts'
import { probeSync } from './fsync.ts'
import { createProgress } from './progress.ts'
import { createBenchReport, type BenchReport } from './report.ts'
import { runBench, type BenchPlan } from './run.ts'
import { ENCODINGS, loadOptionalParts, STRATEGIES, type OptionalParts } from './variants.ts'
import { WORKLOADS } from './workloads.ts'
import { inWorkspace } from './workspace.ts'

/** The backend's own default first: what others are held against. */
const DELAYS_MS = [200, 5]

/** Flags with the numbers filled in. */
export type BenchOptions = BenchFlags & { readonly rounds: number; readonly steps: number }

/** Measure. */
export async function measure(options: BenchOptions): Promise<BenchReport> {
  const parts = await loadOptionalParts()
  const plan = planOf(options, parts)
  const folder = resolve(options.dir ?? tmpdir())
  const progress = createProgress('bench')
  try {
    return await inWorkspace(options.dir, async (workspace) => {
      const sync = probeSync(workspace.dir)
      const run = await runBench(plan, parts, workspace, progress.update)
      return createBenchReport(plan, run, { folder, sync, absent: parts.absent })
    })
  } finally {
    progress.end()
  }
}

function planOf(
  { strategy, encoding, delay, workload, rounds, steps }: BenchOptions,
  { stock, sqlite, absent }: OptionalParts,
): BenchPlan {
  const strategies = STRATEGIES.filter(
    (name) => (strategy ?? STRATEGIES).includes(name) && (name !== 'stock' || stock !== undefined),
  )
  const encodings = ENCODINGS.filter(
    (name) => (encoding ?? ENCODINGS).includes(name) && (name !== 'sqlite' || sqlite !== undefined),
  )
  if (strategies.length === 0) throw new UsageError(`--strategy: nothing is left to measure (${absent.join('; ')})`)
  if (encodings.length === 0) throw new UsageError(`--encoding: nothing is left to measure (${absent.join('; ')})`)
  const delays = [...new Set(delay ?? DELAYS_MS)]
  return {
    strategies,
    settings: encodings.flatMap((name) => delays.map((delayMs) => ({ encoding: name, delayMs }))),
    workloads: WORKLOADS.filter(({ id }) => workload?.includes(id) ?? true),
    rounds,
    steps,
  }
}
