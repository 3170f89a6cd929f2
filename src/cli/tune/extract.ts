/**
 * From the rows of a log to the shapes of its turns. No text, no name, no id, no argument and no result of a log gets
 * past this file.
 */
import { record, type LogRow } from './log.ts'
import type { LogShape, StepShape, TurnShape } from './shape.ts'

/** Extract the shapes of a log. */
export function extractShape(rows: readonly LogRow[]): LogShape {
  const turns: TurnShape[] = []
  let unfinished = 0
  let turn: OpenTurn | undefined
  for (const row of rows) {
    switch (row.type) {
      case 'turn/start':
        if (turn !== undefined) unfinished += 1
        turn = { startedAt: row.time, lastAt: row.time, steps: [] }
        break
      case 'turn/end': {
        if (turn === undefined) break
        const kind = record(row.data['reason'])['kind']
        const steps = turn.steps.filter((step) => step.messageAt !== undefined).map(closeStep)
        if (kind === 'completed' && steps.length > 0) turns.push({ durationMs: gap(turn.startedAt, row.time), steps })
        else unfinished += 1
        turn = undefined
        break
      }
      default:
        if (turn !== undefined) takeRow(turn, row)
        break
    }
  }
  return { turns, unfinished: unfinished + (turn === undefined ? 0 : 1) }
}

interface OpenTurn {
  readonly startedAt: number
  lastAt: number
  readonly steps: OpenStep[]
}

interface OpenCall {
  readonly id: unknown
  readonly calledAt: number
  readonly argumentBytes: number
  resultBytes: number
  endedAt?: number
  parallel: boolean
}

interface OpenStep {
  readonly barrierMs: number
  readonly startedAt: number
  requestAt: number
  requestBytes: number
  firstChunkAt?: number
  messageAt?: number
  messageBytes: number
  textBytes: number
  chunks: number
  readonly calls: OpenCall[]
}

const PACKED = new Set(['text-chunks', 'reasoning-chunks', 'tool-call-chunks'])
/** What a line has besides its text: ids, keys, positions. */
const ENVELOPE_BYTES = 350

function takeRow(turn: OpenTurn, row: LogRow): void {
  const { type, time, bytes, data } = row
  const { lastAt } = turn
  turn.lastAt = time
  if (type === 'step/start') {
    turn.steps.push({
      barrierMs: gap(lastAt, time),
      startedAt: time,
      requestAt: time,
      requestBytes: 0,
      messageBytes: 0,
      textBytes: 0,
      chunks: 0,
      calls: [],
    })
    return
  }
  const step = turn.steps.at(-1)
  if (step === undefined) return
  if (type === 'assistant/chunk' || PACKED.has(type)) {
    const { count, textBytes } = sizeOfChunks(row)
    step.firstChunkAt ??= time
    step.chunks += count
    step.textBytes += textBytes
  } else if (type === 'assistant/message') {
    step.messageAt = time
    step.messageBytes = bytes
  } else if (type === 'tool/call') {
    const argumentBytes = lengthOf(data['arguments'])
    const overlapping = step.calls.filter((call) => call.endedAt === undefined)
    for (const call of overlapping) call.parallel = true
    step.calls.push({
      id: data['callId'],
      calledAt: time,
      argumentBytes,
      resultBytes: 0,
      parallel: overlapping.length > 0,
    })
  } else if (type === 'tool/result') {
    const id = record(record(data['message'])['source'])['callId']
    const call = step.calls.find((open) => open.endedAt === undefined && open.id === id)
    if (call === undefined) return
    call.endedAt = time
    call.resultBytes = Math.max(0, bytes - ENVELOPE_BYTES)
  } else if (step.messageAt === undefined && step.firstChunkAt === undefined) {
    step.requestAt = time
    step.requestBytes += bytes
  }
}

/** Pieces of text in a row of chunks, and their size; those of calls come back with the calls. */
function sizeOfChunks({ type, data }: LogRow): { count: number; textBytes: number } {
  const single = lengthOf(record(data['chunk'])['text'])
  if (type === 'assistant/chunk') return { count: single > 0 ? 1 : 0, textBytes: single }
  if (type === 'tool-call-chunks') return { count: 0, textBytes: 0 }
  const texts = Object.values(data).find(
    (value) => Array.isArray(value) && value.every((text) => typeof text === 'string'),
  ) as string[] | undefined
  return { count: texts?.length ?? 0, textBytes: (texts ?? []).reduce((sum, text) => sum + Buffer.byteLength(text), 0) }
}

function closeStep(step: OpenStep): StepShape {
  const { startedAt, requestAt, messageAt = requestAt, firstChunkAt = messageAt } = step
  const argumentBytes = step.calls.reduce((sum, call) => sum + call.argumentBytes, 0)
  return {
    barrierMs: step.barrierMs,
    requestBytes: step.requestBytes,
    assemblyMs: gap(startedAt, requestAt),
    latencyMs: gap(requestAt, firstChunkAt),
    // Formats without chunks still have the message.
    textBytes:
      step.firstChunkAt !== undefined
        ? step.textBytes
        : Math.max(0, step.messageBytes - argumentBytes - ENVELOPE_BYTES),
    chunks: step.chunks,
    streamMs: gap(firstChunkAt, messageAt),
    calls: step.calls.map((call) => ({
      argumentBytes: call.argumentBytes,
      resultBytes: call.resultBytes,
      ms: gap(call.calledAt, call.endedAt ?? call.calledAt),
      parallel: call.parallel,
    })),
  }
}

/** A clock that was set back gives no negative time. */
function gap(from: number, to: number): number {
  return Math.max(0, to - from)
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0
}
