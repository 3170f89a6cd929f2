/** Kinds of turns an agent may have; durability costs each of them differently. */
import type { CallScript, StepScript, TurnScript } from './script.ts'

/** One kind. */
export interface Workload {
  readonly id: string
  readonly title: string
  readonly calls: number
  readonly parallel: boolean
  /** Time between a step's barrier and that of its request, in milliseconds. */
  readonly assemblyMs: number
  /** Time in each tool body, in milliseconds. */
  readonly toolMs: number
}

/** All of them. */
export const WORKLOADS: readonly Workload[] = [
  { id: 'one-call', title: 'one call per step', calls: 1, parallel: false, assemblyMs: 0, toolMs: 0 },
  {
    id: 'three-calls',
    title: 'three calls per step, one after the other',
    calls: 3,
    parallel: false,
    assemblyMs: 0,
    toolMs: 0,
  },
  { id: 'parallel', title: 'four parallel calls per step', calls: 4, parallel: true, assemblyMs: 0, toolMs: 0 },
  { id: 'assembly', title: 'one call, 3 ms of prompt assembly', calls: 1, parallel: false, assemblyMs: 3, toolMs: 0 },
  { id: 'tool-time', title: 'one call, 10 ms in its tool', calls: 1, parallel: false, assemblyMs: 0, toolMs: 10 },
]

/** Sizes of an ordinary step: a sentence, a short command, a screen of output. */
const TEXT = { textBytes: 300, chunks: 40 } as const
const CALL = { argumentBytes: 120, resultBytes: 1_500 } as const

/**
 * The turn of a workload.
 * @param steps - steps with calls; the turn ends with one more, without.
 */
export function scriptOf({ calls, parallel, assemblyMs, toolMs }: Workload, steps: number): TurnScript {
  const call: CallScript = { ...CALL, body: { ms: toolMs }, parallel }
  const step: StepScript = {
    ...TEXT,
    assembly: { ms: assemblyMs },
    extraBytes: 0,
    latency: { ms: 0 },
    calls: Array.from({ length: calls }, () => call),
  }
  return { userBytes: 200, steps: [...Array.from({ length: steps }, () => step), { ...step, calls: [] }] }
}
