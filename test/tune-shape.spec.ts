/** What is taken from a recorded log, and what never is. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { extractShape } from '../src/cli/tune/extract.ts'
import type { LogRow } from '../src/cli/tune/log.ts'
import { barriersOf } from '../src/cli/tune/shape.ts'

/** Rows of a log; a time per row, a size per row. */
function rows(...list: readonly (readonly [type: string, time: number, data?: Record<string, unknown>])[]): LogRow[] {
  return list.map(([type, time, data = {}]) => ({ type, time, bytes: 1_000, data }))
}

const call = (callId: string) => ({ callId, name: 'bash', arguments: '{"command":"ls"}' })
const result = (callId: string) => ({ message: { source: { kind: 'tool', callId } } })
const COMPLETED = { reason: { kind: 'completed' } }

describe('no content of a log gets into a shape', () => {
  /** Any JSON, below the fields that are read and beside them. */
  const secret = fc.string({ minLength: 12, maxLength: 40 }).map((text) => `secret-${text}`)
  const anything = fc.oneof(secret, fc.array(secret, { maxLength: 4 }), fc.dictionary(secret, secret, { maxKeys: 3 }))
  const types = fc.constantFrom(
    'turn/start',
    'turn/end',
    'step/start',
    'step/end',
    'user/message',
    'assistant/chunk',
    'text-chunks',
    'reasoning-chunks',
    'tool-call-chunks',
    'assistant/message',
    'tool/call',
    'tool/result',
    'request/header',
    'something/new',
  )
  const data = fc.record(
    {
      callId: secret,
      name: secret,
      arguments: secret,
      texts: fc.array(secret, { minLength: 1, maxLength: 3 }),
      chunk: fc.record({ text: secret, name: secret }),
      message: fc.record({ source: fc.record({ callId: secret }), content: anything }),
      reason: fc.oneof(fc.constant({ kind: 'completed' }), fc.record({ kind: secret })),
      more: anything,
    },
    { requiredKeys: [] },
  )
  const OPENING = rows(['turn/start', 0], ['step/start', 1])
  const CLOSING = rows(['assistant/message', 8], ['tool/call', 9, call('last')], ['turn/end', 9, COMPLETED])
  const row = fc.record({
    type: fc.oneof({ weight: 6, arbitrary: types }, secret),
    time: fc.integer(),
    bytes: fc.nat(10_000),
    data,
  })

  test('its leaves are numbers and flags, whatever the log holds', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 60 }), fc.boolean(), (list, framed) => {
        // Framed, whatever falls into its step is kept.
        const shape = extractShape(
          framed ? [...OPENING, ...list.filter(({ type }) => !type.startsWith('turn/')), ...CLOSING] : list,
        )
        expect(JSON.stringify(shape)).not.toContain('secret-')
        for (const leaf of leaves(shape))
          expect(typeof leaf === 'boolean' || (typeof leaf === 'number' && leaf >= 0)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('an ordinary turn full of secrets yields its sizes alone', () => {
    fc.assert(
      fc.property(secret, secret, (argument, text) => {
        const { turns } = extractShape(
          rows(
            ['turn/start', 0],
            ['step/start', 1],
            ['assistant/chunk', 5, { chunk: { type: 'text-delta', text } }],
            ['assistant/message', 6, { message: { content: [{ text }] } }],
            ['tool/call', 7, { callId: text, name: text, arguments: argument }],
            ['tool/result', 9, result(text)],
            ['turn/end', 10, COMPLETED],
          ),
        )
        expect(JSON.stringify(turns)).not.toContain('secret-')
        const [step] = turns[0]?.steps ?? []
        expect(step).toMatchObject({
          textBytes: Buffer.byteLength(text),
          calls: [{ argumentBytes: Buffer.byteLength(argument), ms: 2 }],
        })
      }),
      { numRuns: 50 },
    )
  })
})

function leaves(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value]
}

describe('shape of a turn', () => {
  test('gaps lie between events, and calls that overlap are parallel', () => {
    const { turns, unfinished } = extractShape(
      rows(
        ['turn/start', 0],
        ['step/start', 3],
        ['user/message', 10],
        ['assistant/chunk', 50, { chunk: { text: 'one' } }],
        ['text-chunks', 70, { texts: ['two', 'three'], dt: [5] }],
        ['assistant/message', 90],
        ['tool/call', 91, call('a')],
        ['tool/call', 92, call('b')],
        ['tool/result', 99, result('b')],
        ['tool/result', 120, result('a')],
        ['tool/call', 121, call('c')],
        ['tool/result', 130, result('c')],
        ['step/end', 131],
        ['step/start', 135],
        ['assistant/message', 140],
        ['turn/end', 150, COMPLETED],
      ),
    )
    expect(unfinished).toBe(0)
    expect(turns).toMatchObject([
      {
        durationMs: 150,
        steps: [
          {
            barrierMs: 3,
            requestBytes: 1_000,
            assemblyMs: 7,
            latencyMs: 40,
            textBytes: 11,
            chunks: 3,
            streamMs: 40,
            calls: [
              { ms: 29, parallel: true },
              { ms: 7, parallel: true },
              { ms: 9, parallel: false },
            ],
          },
          { barrierMs: 4, assemblyMs: 0, latencyMs: 5, chunks: 0, calls: [] },
        ],
      },
    ])
    expect(turns.map(barriersOf)).toEqual([7])
  })

  test('a turn that was cancelled, cut off or never answered is not replayed', () => {
    const { turns, unfinished } = extractShape(
      rows(
        ['turn/start', 0],
        ['step/start', 1],
        ['assistant/message', 2],
        ['turn/end', 3, { reason: { kind: 'aborted' } }],
        ['turn/start', 4],
        ['turn/end', 5, COMPLETED],
        ['turn/start', 6],
        ['step/start', 7],
        ['turn/start', 8],
      ),
    )
    expect({ turns, unfinished }).toEqual({ turns: [], unfinished: 4 })
  })

  test('a format without chunks still tells the size of a message', () => {
    const { turns } = extractShape(
      rows(
        ['turn/start', 0],
        ['step/start', 1],
        ['assistant/message', 9],
        ['tool/call', 9, call('a')],
        ['tool/result', 9, result('a')],
        ['turn/end', 10, COMPLETED],
      ),
    )
    expect(turns[0]?.steps).toMatchObject([{ textBytes: 1_000 - 350 - 16, chunks: 0, latencyMs: 8, streamMs: 0 }])
  })

  test('a clock that was set back gives no negative time', () => {
    const { turns } = extractShape(
      rows(['turn/start', 100], ['step/start', 50], ['assistant/message', 20], ['turn/end', 10, COMPLETED]),
    )
    expect(turns).toMatchObject([{ durationMs: 0, steps: [{ barrierMs: 0, latencyMs: 0 }] }])
  })
})
