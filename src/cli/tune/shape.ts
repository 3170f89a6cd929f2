/** The shape of recorded turns: how many events, how large, how far apart, which calls overlapped. Numbers and flags only. */
/** One tool call. */
interface CallShape {
  readonly argumentBytes: number
  readonly resultBytes: number
  /** From `tool/call` to `tool/result`, in milliseconds: its barrier and its body. */
  readonly ms: number
  /** Whether it overlapped another call. */
  readonly parallel: boolean
}

/** One step. */
export interface StepShape {
  /** From the event before to the start of the step, in milliseconds: its barrier, and little else. */
  readonly barrierMs: number
  /** Events between the start of the step and the request. */
  readonly requestBytes: number
  /** From the start of the step to the last of them, in milliseconds. */
  readonly assemblyMs: number
  /** From there to the first chunk: the barrier of the request, and the model. */
  readonly latencyMs: number
  readonly textBytes: number
  /** Pieces the text came in; 0 for a format that does not record them. */
  readonly chunks: number
  /** From the first chunk to the message. */
  readonly streamMs: number
  readonly calls: readonly CallShape[]
}

/** One finished turn. */
export interface TurnShape {
  /** From `turn/start` to `turn/end`, in milliseconds. */
  readonly durationMs: number
  readonly steps: readonly StepShape[]
}

/** What a log holds. */
export interface LogShape {
  readonly turns: readonly TurnShape[]
  /** Turns that were cancelled, failed or never ended: they say little about an ordinary one. */
  readonly unfinished: number
}

/** Barriers of a turn: one before each step, one per request, one per call. */
export function barriersOf({ steps }: TurnShape): number {
  return steps.reduce((sum, { calls }) => sum + 2 + calls.length, 0)
}
