/** From the shape of a recorded turn to a script for the stand, with gaps scaled down. */
import type { StepScript, TurnScript } from '../bench/script.ts'
import type { Waited } from '../bench/waits.ts'
import type { StepShape, TurnShape } from './shape.ts'

/** How time is treated. */
export interface Gaps {
  /** Longest gap that really passes, in milliseconds: longer than a write takes, so that writes overlap it as they did. */
  readonly capMs: number
  /** Time that putting a prompt together takes: logs carry no event that tells it from the model's. */
  readonly assemblyMs: number
  /** Write-behind delay of the setting: after a longer gap the events before it are on disk, and are written in the replay. */
  readonly delayMs: number
  /** Waiting that recorded gaps include: the barrier of a call lies between its two events. */
  readonly waits: Readonly<Record<Waited, number>>
}

/** Most steps of one turn that are played; more of the same say nothing new. */
export const MAX_STEPS = 25
const MAX_CHUNKS = 500

/** Write the script. */
export function toScript({ steps }: TurnShape, gaps: Gaps): TurnScript {
  const [first] = steps
  return {
    userBytes: first?.requestBytes ?? 0,
    // The first step's events come with what the user says.
    steps: steps.map((step, index) => toStep(step, index === 0 ? 0 : step.requestBytes, gaps)),
  }
}

function toStep(step: StepShape, extraBytes: number, { capMs, delayMs, waits, assemblyMs: knownMs }: Gaps): StepScript {
  const { latencyMs, textBytes, chunks, streamMs, calls } = step
  const assemblyMs = Math.max(step.assemblyMs, knownMs)
  const shorten = (ms: number) => Math.min(Math.max(0, ms), capMs)
  return {
    extraBytes,
    assembly: { ms: shorten(assemblyMs), written: assemblyMs > delayMs },
    latency: { ms: shorten(latencyMs - waits.request - (assemblyMs - step.assemblyMs)) },
    textBytes,
    chunks: Math.min(chunks, MAX_CHUNKS),
    // Write-behind takes a batch every delay; only the last, unfinished one is pending at the end.
    pendingChunks:
      streamMs > delayMs ? Math.ceil(Math.min(chunks, MAX_CHUNKS) * ((streamMs % delayMs) / streamMs)) : undefined,
    calls: calls.map((call) => {
      const bodyMs = call.ms - waits.tool
      return {
        argumentBytes: call.argumentBytes,
        resultBytes: call.resultBytes,
        parallel: call.parallel,
        body: { ms: shorten(bodyMs), written: bodyMs > delayMs },
      }
    }),
  }
}

/**
 * Turns that stand for all: spread evenly over their sizes.
 * @param steps - most steps of one that are kept.
 */
export function sampleTurns(turns: readonly TurnShape[], count: number, steps: number): TurnShape[] {
  const sorted = turns.toSorted((a, b) => a.steps.length - b.steps.length)
  const taken = Math.min(count, sorted.length)
  return Array.from({ length: taken }, (_, index) => {
    const turn = sorted[Math.floor(((index + 0.5) / taken) * sorted.length)]
    if (turn === undefined) throw new Error('there is a turn to sample')
    return { ...turn, steps: turn.steps.slice(0, steps) }
  })
}
