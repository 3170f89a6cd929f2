/** From samples to a recommendation and the rows to paste. */
import { describe, expect, test } from 'vitest'
import { parseDocument, type CollectionTag, type ScalarTag } from 'yaml'
import { STRATEGIES, type Variant } from '../src/cli/bench/variants.ts'
import { effortOf, meaningOf } from '../src/cli/tune/meaning.ts'
import { patchOf } from '../src/cli/tune/patch.ts'
import { sampleTurns, toScript } from '../src/cli/tune/play.ts'
import { createPredictor, levelOf } from '../src/cli/tune/predict.ts'
import { recommend, type Candidate } from '../src/cli/tune/report.ts'
import type { StepShape, TurnShape } from '../src/cli/tune/shape.ts'

const NOW: Variant = { strategy: 'stock', encoding: 'zstd', delayMs: 200 }
const JS: ScalarTag | CollectionTag = { tag: 'tag:yaml.org,2002:js', resolve: (text: string) => ({ js: text }) }

function rowsOf(to: Variant, from: Variant = NOW): unknown {
  const document = parseDocument(patchOf(from, to), { customTags: [JS] })
  expect(document.errors).toEqual([])
  return document.toJS()
}

describe('the patch', () => {
  test('mounts a strategy by its row', () => {
    expect(rowsOf({ ...NOW, strategy: 'coalesced' })).toEqual([
      { insert: [{ id: 'checkpoint-strategy', name: 'dsh-checkpoint-otel/strategies/coalesced' }] },
    ])
  })

  test('says the folder again where it sets the backend, for a patch replaces the whole config', () => {
    expect(rowsOf({ ...NOW, delayMs: 20 })).toEqual([
      {
        id: 'session-persistence-jsonl',
        config: { root: { js: "dshHomePath('sessions')" }, compression: 'zstd', writeBatchMaxDelayMs: 20 },
      },
    ])
  })

  test('gives another encoding a folder of its own', () => {
    expect(rowsOf({ ...NOW, encoding: 'raw' })).toMatchObject([
      { config: { root: { js: "dshHomePath('sessions-raw')" }, compression: 'none' } },
    ])
    expect(rowsOf({ ...NOW, encoding: 'sqlite' })).toMatchObject([
      { id: 'session-persistence-jsonl', disabled: true },
      { insert: [{ name: '@deepseek-ai/dsh-session-persistence-sqlite' }] },
    ])
  })

  test('makes the operator name the tools that selective releases', () => {
    expect(rowsOf({ ...NOW, strategy: 'selective' })).toMatchObject([
      { id: 'session-checkpoint-otel', config: { allowUnguarded: true } },
      { insert: [{ config: { tools: ['<tool>'] } }] },
    ])
  })

  test('is empty where nothing changes', () => {
    expect(patchOf(NOW, NOW)).toBe('')
    expect(patchOf(NOW, { ...NOW, strategy: 'default' })).toBe('')
  })
})

test('selective alone gives a guarantee up, and every change of strategy says what it means', () => {
  for (const strategy of STRATEGIES) {
    const { safe, notes } = meaningOf(NOW, { ...NOW, strategy })
    expect(safe).toBe(strategy !== 'selective')
    expect(notes.length > 0).toBe(strategy !== 'stock')
  }
  expect(meaningOf(NOW, { ...NOW, encoding: 'raw' }).notes.join(' ')).toContain('stay in the old one')
})

function candidate(variant: Partial<Variant>, median: number, finding: Candidate['finding'] = 'less'): Candidate {
  const to = { ...NOW, ...variant }
  const estimate = { median, low: median, high: median }
  return {
    ...to,
    ratio: estimate,
    waitedPerTurnMs: estimate,
    share: estimate,
    finding,
    ...meaningOf(NOW, to),
    patch: patchOf(NOW, to),
  }
}

describe('the recommendation', () => {
  test('is the best that is sure and safe', () => {
    const list = [
      candidate({ strategy: 'selective' }, 0.2),
      candidate({ strategy: 'pipelined' }, 0.4, 'unsure'),
      candidate({ strategy: 'coalesced' }, 0.6),
      candidate({ encoding: 'raw' }, 0.8),
    ]
    expect(recommend(list, NOW)).toBe(list[2])
  })

  test('is the smaller change where two are nearly as good, and not where they are not', () => {
    const large = candidate({ strategy: 'coalesced', encoding: 'raw', delayMs: 20 }, 0.6)
    const small = candidate({ strategy: 'coalesced', encoding: 'raw' }, 0.63)
    expect(effortOf(NOW, small)).toBeLessThan(effortOf(NOW, large))
    expect(recommend([large, small], NOW)).toBe(small)
    const worse = candidate({ strategy: 'coalesced', encoding: 'raw' }, 0.7)
    expect(recommend([large, worse], NOW)).toBe(large)
  })

  test('is nothing where nothing is surely better', () => {
    expect(
      recommend([candidate({ strategy: 'pipelined' }, 0.9, 'unsure'), candidate({}, 1, 'recorded')], NOW),
    ).toBeUndefined()
  })
})

const STEP: StepShape = {
  barrierMs: 2,
  requestBytes: 400,
  assemblyMs: 0,
  latencyMs: 900,
  textBytes: 300,
  chunks: 100,
  streamMs: 1_050,
  calls: [],
}
const TURN: TurnShape = { durationMs: 5_000, steps: Array.from({ length: 25 }, () => STEP) }
const STEPS = { waitMs: 1, besidesMs: 0.5, perBarrier: 1.2 }

describe('the level', () => {
  test('lies between the replay and the gaps before the recorded steps, less what the host takes there', () => {
    const level = levelOf([TURN], 1, STEPS, NOW)
    expect(level).toMatchObject({ from: 'both', pace: 1.5 })
    expect(level.recordedMs).toBeCloseTo(1.8)
    expect(level.perBarrierMs).toBeCloseTo(Math.sqrt(1.8))
  })

  test.each([
    ['from the replay where a strategy does not wait at steps', [TURN], { ...NOW, strategy: 'coalesced' as const }],
    ['from the replay where there are few steps', [{ ...TURN, steps: TURN.steps.slice(0, 5) }], NOW],
    [
      'from the replay where the logs tell of another disk',
      [{ ...TURN, steps: TURN.steps.map((step) => ({ ...step, barrierMs: 50 })) }],
      NOW,
    ],
  ])('comes %s', (_, turns, recorded) => {
    expect(levelOf(turns, 1.1, STEPS, recorded)).toMatchObject({ from: 'replay', perBarrierMs: 1.1 })
  })

  test('the time of a turn less its waiting stays what it is', () => {
    const predict = createPredictor([TURN], { perBarrierMs: 10, recordedMs: 10, from: 'both', pace: 1 }, 0)
    const half = predict({ median: 0.5, low: 0.4, high: 0.6 })
    expect(predict({ median: 1, low: 1, high: 1 }).waitedPerTurnMs.median).toBe(500)
    expect(half.waitedPerTurnMs.median).toBe(250)
    // 25 streams of 1,050 ms are more than the turn took: there cannot have been less work than they.
    expect(half.share.median).toBeCloseTo(250 / (26_250 + 250))
  })
})

describe('gaps of a replay', () => {
  const gaps = { capMs: 10, assemblyMs: 0, delayMs: 200, waits: { request: 5, tool: 5, step: 5 } }

  test('are cut, and writes that write-behind would have made are made', () => {
    const call = { argumentBytes: 1, resultBytes: 1, ms: 400, parallel: false }
    const [step] = toScript(
      { durationMs: 1, steps: [{ ...STEP, assemblyMs: 300, calls: [call, { ...call, ms: 12 }] }] },
      gaps,
    ).steps
    expect(step).toMatchObject({
      assembly: { ms: 10, written: true },
      latency: { ms: 10 },
      calls: [{ body: { ms: 10, written: true } }, { body: { ms: 7, written: false } }],
    })
    // 1,050 ms of stream: five batches of 200 ms, and the chunks of the last 50 ms.
    expect(step?.pendingChunks).toBe(5)
  })

  test('a stream shorter than the delay leaves all its chunks pending', () => {
    expect(
      toScript({ durationMs: 1, steps: [{ ...STEP, streamMs: 150 }] }, gaps).steps[0]?.pendingChunks,
    ).toBeUndefined()
  })

  test('a sample is spread over small and large turns, and cut to the steps allowed', () => {
    const turns = [9, 1, 5, 3, 7].map((count) => ({ ...TURN, steps: TURN.steps.slice(0, count) }))
    expect(sampleTurns(turns, 3, 6).map(({ steps }) => steps.length)).toEqual([1, 5, 6])
    expect(sampleTurns(turns, 9, 25)).toHaveLength(5)
  })
})
