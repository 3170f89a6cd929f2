/** Replays sampled turns under every variant on this disk, within a time limit. */
import { join } from 'node:path'
import { pausedMs } from '../bench/script.ts'
import { Stand } from '../bench/stand.ts'
import { median, shuffled } from '../bench/statistics.ts'
import { nameOf, type OptionalParts, type Variant } from '../bench/variants.ts'
import type { Workspace } from '../bench/workspace.ts'
import { calibrate, fit } from './calibrate.ts'
import { toScript } from './play.ts'
import { barriersOf, type TurnShape } from './shape.ts'

/** What is replayed. */
export interface ReplayPlan {
  readonly turns: readonly TurnShape[]
  /** What was recorded, first. */
  readonly variants: readonly Variant[]
  readonly maxTurns: number
  readonly seconds: number
  /** See {@link toScript}. */
  readonly assemblyMs: number
}

/** Samples of one variant. */
export interface Replayed {
  readonly variant: Variant
  /** Milliseconds waited per barrier, one figure per block. */
  readonly samples: number[]
}

/** Waits at `step`, of the recorded variant, in milliseconds; medians over the blocks. */
export interface StepWaits {
  readonly waitMs: number
  /** From the event before to `step/start`, less the wait. */
  readonly besidesMs: number
  /** Waiting per barrier of any kind, as a multiple of the wait at `step` in the same turn. */
  readonly perBarrier: number
}

/** All samples of a run. A block is one turn under every variant. */
export interface Replay {
  readonly replayed: readonly Replayed[]
  /** The recorded variant once more: what differs is noise. */
  readonly again: Replayed
  readonly blocks: number
  readonly sampledTurns: number
  /** Gaps longer than this were shortened to it, in milliseconds. */
  readonly capMs: number
  /** What the host itself takes per step, in milliseconds. */
  readonly hostMsPerStep: number
  /** The `step` barriers of the recorded variant here: what the level of a log is told by. */
  readonly steps: StepWaits
}

/** Fewest blocks that say anything. */
const MIN_BLOCKS = 3

/** Run it. At least {@link MIN_BLOCKS} blocks are played, each with fewer steps where time is short. */
export async function replay(
  plan: ReplayPlan,
  parts: OptionalParts,
  { dir, signal }: Workspace,
  progress: (done: number, what: string) => void,
): Promise<Replay> {
  const deadline = performance.now() + plan.seconds * 1_000
  const stands: Stand[] = []
  try {
    for (const variant of plan.variants) {
      signal.throwIfAborted()
      stands.push(await Stand.create(variant, join(dir, String(stands.length)), parts))
    }
    const [reference] = stands
    if (reference === undefined) throw new Error('there is a variant to replay')
    const replayed = stands.map((stand) => ({ stand, variant: stand.variant, samples: [] as number[] }))
    const again = { stand: reference, variant: reference.variant, samples: [] as number[] }
    const contestants = [...replayed, again]

    const first = await calibrate(reference, plan.turns, signal)
    const { turns, capMs } = fit(plan, contestants.length, reference.variant, first)
    const gaps = { capMs, assemblyMs: plan.assemblyMs }
    const host: number[] = []
    const steps: { waitMs: number; besidesMs: number; perBarrier: number }[] = []
    let blocks = 0
    let longest = 0
    while (blocks < MIN_BLOCKS || performance.now() + longest < deadline) {
      const startedAt = performance.now()
      const turn = turns[blocks % turns.length]
      if (turn === undefined) break
      const barriers = barriersOf(turn)
      for (const contestant of shuffled(contestants)) {
        signal.throwIfAborted()
        progress(Math.min(1, 1 - (deadline - performance.now()) / (plan.seconds * 1_000)), nameOf(contestant.variant))
        const script = toScript(turn, { ...gaps, delayMs: contestant.variant.delayMs, waits: first.waits })
        const measured = await contestant.stand.measure(script)
        contestant.samples.push(measured.totalMs / barriers)
        if (contestant.stand === reference) {
          const { step } = measured.boundaries
          const waitMs = step.ms / Math.max(1, step.count)
          steps.push({
            waitMs,
            besidesMs: measured.stepGapMs - waitMs,
            perBarrier: measured.totalMs / barriers / waitMs,
          })
        }
        host.push((measured.turnMs - measured.totalMs - pausedMs(script)) / turn.steps.length)
      }
      blocks += 1
      longest = Math.max(longest, performance.now() - startedAt)
    }
    const bare = ({ variant, samples }: Replayed): Replayed => ({ variant, samples })
    return {
      replayed: replayed.map(bare),
      again: bare(again),
      blocks,
      sampledTurns: Math.min(turns.length, blocks),
      capMs,
      hostMsPerStep: Math.max(0, median(host)),
      steps: {
        waitMs: median(steps.map((step) => step.waitMs)),
        besidesMs: median(steps.map((step) => step.besidesMs)),
        perBarrier: median(steps.map((step) => step.perBarrier)),
      },
    }
  } finally {
    for (const stand of stands) await stand.dispose()
  }
}
