/** One turn written out in advance: what the scripted model asks for, how large each event is, where time passes. */
import type { StreamChunk } from '@deepseek-ai/dsh-llm'

/** Time that passes with nothing waited for. */
export interface Pause {
  /** Milliseconds that really pass. */
  readonly ms: number
  /** Write first what is pending: stands for a longer gap in which write-behind would have done so. */
  readonly written?: boolean
}

/** One tool call. */
export interface CallScript {
  readonly argumentBytes: number
  readonly resultBytes: number
  readonly body: Pause
  /** Whether it may overlap its neighbours. */
  readonly parallel: boolean
}

/** One request, its answer, and the calls in it. */
export interface StepScript {
  /** Between the barrier of the step and that of its request, where a host puts the prompt together. */
  readonly assembly: Pause
  /** Events appended there beyond the host's own. */
  readonly extraBytes: number
  /** Between the request and the first chunk of its answer. */
  readonly latency: Pause
  readonly textBytes: number
  /** Chunks the text comes in. */
  readonly chunks: number
  /** How many of them are not yet on disk when the answer ends; absent: all. */
  readonly pendingChunks?: number
  readonly calls: readonly CallScript[]
}

/** One turn. */
export interface TurnScript {
  readonly userBytes: number
  readonly steps: readonly StepScript[]
}

/** Time that passes in a turn by script, in milliseconds; parallel calls count once. */
export function pausedMs({ steps }: TurnScript): number {
  return steps.reduce((sum, step) => sum + step.assembly.ms + step.latency.ms + bodiesMs(step.calls), 0)
}

function bodiesMs(calls: readonly CallScript[]): number {
  const parallel = calls.filter((call) => call.parallel).map((call) => call.body.ms)
  const serial = calls.filter((call) => !call.parallel).map((call) => call.body.ms)
  return Math.max(0, ...parallel) + serial.reduce((sum, ms) => sum + ms, 0)
}

/** Id of a call of a script. */
export function callIdOf(step: number, call: number): string {
  return `call-${step}-${call}`
}

/**
 * The answer of the scripted model for one step.
 * @param pause - lets time pass.
 */
export async function* answerOf(
  step: StepScript,
  index: number,
  pause: (pause: Pause) => Promise<void>,
): AsyncIterable<StreamChunk> {
  await pause(step.latency)
  let block = 0
  if (step.textBytes > 0) {
    const text = filler(step.textBytes)
    const chunks = Math.max(1, Math.min(step.chunks, text.length))
    const size = Math.ceil(text.length / chunks)
    const firstPending = chunks - (step.pendingChunks ?? chunks)
    yield { type: 'block-start', index: block, blockType: 'text' }
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      if (chunk === firstPending && chunk > 0) await pause({ ms: 0, written: true })
      yield { type: 'text-delta', index: block, text: text.slice(chunk * size, (chunk + 1) * size) }
    }
    yield { type: 'block-end', index: block, block: { type: 'text', text } }
    block += 1
  }
  for (const [call, { argumentBytes, parallel }] of step.calls.entries()) {
    const args = JSON.stringify({ text: filler(argumentBytes) })
    const id = callIdOf(index, call) as never
    const name = parallel ? PARALLEL_TOOL : SERIAL_TOOL
    yield { type: 'block-start', index: block, blockType: 'tool-call' }
    yield { type: 'tool-call-delta', index: block, id, name, argumentsDelta: args }
    yield { type: 'block-end', index: block, block: { type: 'tool-call', id, name, arguments: args } as never }
    block += 1
  }
  yield { type: 'finish', reason: { kind: step.calls.length === 0 ? 'stop' : 'tool-calls' } }
}

/** Tools that the scripted model calls. */
export const PARALLEL_TOOL = 'parallel'
export const SERIAL_TOOL = 'serial'

/** Largest text of one event; a longer one is cut to it. */
const MAX_FILLER_BYTES = 1 << 20
let text = ''

/**
 * Text of made-up words that zstd compresses about threefold, as prose and code do; a run of one letter would compress
 * to nothing.
 */
export function filler(bytes: number): string {
  if (text === '') text = createText()
  const length = Math.max(0, Math.min(Math.round(bytes), MAX_FILLER_BYTES))
  const start = Math.floor(Math.random() * (text.length - length))
  return text.slice(start, start + length)
}

const VOCABULARY = 500

function createText(): string {
  const word = () =>
    Math.random()
      .toString(36)
      .slice(2, 4 + Math.floor(Math.random() * 8))
  const words = Array.from({ length: VOCABULARY }, word)
  let result = ''
  // Twice the longest request, so that slices differ.
  while (result.length < 2 * MAX_FILLER_BYTES) {
    // Few words are frequent and many are rare, as in any language.
    result += `${words[Math.floor(Math.random() ** 3 * VOCABULARY)] ?? ''} `
  }
  return result
}
