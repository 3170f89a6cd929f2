/** How much of the recorded turns fits into the time there is. */
import { mean } from 'simple-statistics'
import { pausedMs } from '../bench/script.ts'
import type { Measured, Stand } from '../bench/stand.ts'
import { median, shuffled } from '../bench/statistics.ts'
import type { Variant } from '../bench/variants.ts'
import { WAITED, type Waited } from '../bench/waits.ts'
import { MAX_STEPS, sampleTurns, toScript } from './play.ts'
import type { ReplayPlan } from './replay.ts'
import type { TurnShape } from './shape.ts'

/** What was found before the replays. */
export interface Calibration {
  readonly waits: Readonly<Record<Waited, number>>
  /** Without gaps. */
  readonly msPerStep: number
}

const CALIBRATIONS = 5
const CALIBRATION_STEPS = 6
const NO_WAITS: Record<Waited, number> = { request: 0, tool: 0, step: 0 }

/** What one wait takes at each boundary under the recorded variant, without gaps; a first pass warms up. */
export async function calibrate(stand: Stand, turns: readonly TurnShape[], signal: AbortSignal): Promise<Calibration> {
  const [turn] = sampleTurns(turns, 1, CALIBRATION_STEPS)
  if (turn === undefined) throw new Error('there is a turn to replay')
  const script = toScript(turn, { capMs: 0, assemblyMs: 0, delayMs: stand.variant.delayMs, waits: NO_WAITS })
  await stand.measure(script)
  const passes: Measured[] = []
  while (passes.length < CALIBRATIONS) {
    signal.throwIfAborted()
    passes.push(await stand.measure(script))
  }
  const waits = Object.fromEntries(
    WAITED.map((boundary) => [
      boundary,
      median(passes.map(({ boundaries }) => boundaries[boundary].ms / Math.max(1, boundaries[boundary].count))),
    ]),
  ) as Record<Waited, number>
  return { waits, msPerStep: median(passes.map(({ turnMs }) => turnMs)) / turn.steps.length }
}

/** How many blocks there should be time for. */
const GOOD_BLOCKS = 8
/** A turn takes longer under some variants than under the recorded one. */
const SLACK = 1.4
const LEAST_CAP_MS = 3
/**
 * What gaps are cut to and turns are cut to, the best that fits. A write after an idle moment takes longer than one of
 * a row without a pause, twice as long on some machines: long gaps are worth more than many steps.
 */
const FITS = [
  ...[MAX_STEPS, 12, 6].flatMap((steps) => [30, 20, 15, 10].map((capMs) => ({ steps, capMs }))),
  ...[12, 6, 3, 1].flatMap((steps) => [7, 5, LEAST_CAP_MS].map((capMs) => ({ steps, capMs }))),
] as const

/** Choose turns, steps and gaps so that enough blocks fit into the time. */
export function fit(
  { turns, maxTurns, seconds, assemblyMs }: ReplayPlan,
  contestants: number,
  { delayMs }: Variant,
  { waits, msPerStep }: Calibration,
) {
  const affordMs = (seconds * 1_000) / contestants / SLACK
  for (const { capMs, steps } of FITS) {
    const sample = sampleTurns(turns, maxTurns, steps)
    const costs = sample.map(
      (turn) => turn.steps.length * msPerStep + pausedMs(toScript(turn, { capMs, assemblyMs, delayMs, waits })),
    )
    if (mean(costs) * GOOD_BLOCKS <= affordMs) return { turns: shuffled(sample), capMs }
  }
  return { turns: shuffled(sampleTurns(turns, maxTurns, 1)), capMs: LEAST_CAP_MS }
}
