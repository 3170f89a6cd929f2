/** `tune` from its flags to its report. */
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { probeSync } from '../bench/fsync.ts'
import { createProgress } from '../bench/progress.ts'
import {
  DEFAULT_SETTING,
  ENCODINGS,
  loadOptionalParts,
  nameOf,
  STRATEGIES,
  type OptionalParts,
  type StrategyName,
  type Variant,
} from '../bench/variants.ts'
import { inWorkspace } from '../bench/workspace.ts'
import { findLogs, type FoundLogs } from './find.ts'
import { replay } from './replay.ts'
import { createTuneReport, type TuneReport } from './report.ts'

/** How it runs. */
export interface TuneOptions {
  readonly paths: readonly string[]
  readonly dir?: string
  readonly maxTurns: number
  readonly seconds: number
  /** Time the host takes to put a prompt together, in milliseconds. */
  readonly assembly: number
  /** Strategy the logs were recorded under; the stock policy, or what waits alike, when absent. */
  readonly recorded?: StrategyName
}

/** Write-behind delays that are tried besides the backend's own. */
const OTHER_DELAYS_MS = [20]

/** Replay the logs. */
export async function tune({
  paths,
  dir,
  maxTurns,
  seconds,
  recorded,
  assembly: assemblyMs,
}: TuneOptions): Promise<TuneReport> {
  const found = findLogs(paths)
  const parts = await loadOptionalParts()
  const variants = variantsOf(recordedVariant(found, parts, recorded), parts)
  const turns = found.logs.flatMap((log) => log.turns)
  const progress = createProgress('tune')
  const startedAt = performance.now()
  try {
    return await inWorkspace(dir, async (workspace) => {
      const sync = probeSync(workspace.dir)
      const result = await replay({ turns, variants, maxTurns, seconds, assemblyMs }, parts, workspace, progress.update)
      const took = (performance.now() - startedAt) / 1_000
      return createTuneReport(found, result, {
        folder: resolve(dir ?? tmpdir()),
        sync,
        absent: parts.absent,
        seconds: took,
        assemblyMs,
      })
    })
  } finally {
    progress.end()
  }
}

/** A log tells its encoding; of its policy and its delay it says nothing. */
function recordedVariant({ logs }: FoundLogs, { stock }: OptionalParts, strategy: StrategyName | undefined): Variant {
  const raw = logs.filter((log) => log.encoding === 'raw').length
  const encoding = raw * 2 > logs.length ? 'raw' : 'zstd'
  return {
    strategy: strategy ?? (stock === undefined ? 'default' : 'stock'),
    encoding,
    delayMs: DEFAULT_SETTING.delayMs,
  }
}

/** The recorded one first. The stock policy is replayed only where it is that one: ours without a strategy waits alike. */
function variantsOf(recorded: Variant, { sqlite }: OptionalParts): Variant[] {
  const all = STRATEGIES.filter((strategy) => strategy !== 'stock').flatMap((strategy) =>
    ENCODINGS.filter((encoding) => encoding !== 'sqlite' || sqlite !== undefined).flatMap((encoding) =>
      // What selective saves, a delay does not change.
      [DEFAULT_SETTING.delayMs, ...(strategy === 'selective' ? [] : OTHER_DELAYS_MS)].map((delayMs): Variant => ({
        strategy,
        encoding,
        delayMs,
      })),
    ),
  )
  return [recorded, ...all.filter((variant) => nameOf(variant) !== nameOf(recorded))]
}
