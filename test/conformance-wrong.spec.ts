import type { Context } from '@deepseek-ai/cordis'
import { describe, expect, it, test } from 'vitest'
import type { Barrier, Decision } from '../src/index.ts'
import { checkStrategy, describeStrategy, type Report, type SuiteOptions } from '../src/testing/index.ts'

/** A plugin around a `decide`. */
function strategyOf(decide: (barrier: Barrier) => unknown, name = 'wrong') {
  return {
    name: `checkpoint-strategy-${name}`,
    apply: (ctx: Context) =>
      void ctx.provide('checkpointStrategy', { name, decide: decide as (barrier: Barrier) => Decision }),
  }
}

const FLUSH: Decision = { kind: 'flush' }
const allowed: SuiteOptions = { policy: { allowUnguarded: true } }
const messages = ({ findings }: Report) => findings.map(({ scenario, message }) => `${scenario}: ${message}`).join('\n')

describe('a strategy that skips a tool', () => {
  const skipsTool = strategyOf(({ boundary }) => (boundary === 'tool' ? { kind: 'skip', reason: 'in a hurry' } : FLUSH))

  test('is caught at the effect where the policy lets it', async () => {
    const report = await checkStrategy(skipsTool, undefined, allowed)
    expect(messages(report)).toMatch(
      /guarantees: the body of tool "write" began before its call was on disk.*answered "skip" at `tool` \(in a hurry\)/,
    )
    expect(messages(report)).toMatch(/guarantees: the strategy released `tool` of tool "write" without a durable log/)
  })

  test('is caught by its answers where the policy overrules it', async () => {
    const report = await checkStrategy(skipsTool)
    expect(messages(report)).not.toContain('began before its call was on disk')
    expect(messages(report)).toMatch(
      /decisions: decide answered "skip" at `tool` of tool "\w+" with \d+ event\(s\) not known to be durable/,
    )
    expect(messages(report)).toMatch(
      /guarantees: decide asked not to wait at `tool` of tool "write".*the policy flushed instead/,
    )
  })
})

describe('a strategy that never settles', () => {
  const kinds: [how: string, answer: unknown, message: RegExp][] = [
    ['answers a promise', new Promise(() => {}), /decide answered a promise: decide is synchronous/],
    ['delays for ever', { kind: 'flush', delayMs: Infinity }, /decide answered a flush with delayMs Infinity/],
    [
      'delays as long as it may',
      { kind: 'flush', delayMs: 1_000 },
      /decide delays the flush at `\w+`.* by up to 1000 ms \(maxWaitMs is 250\)/,
    ],
    ['answers nothing', undefined, /decide answered undefined, which is no decision/],
  ]
  for (const [how, answer, message] of kinds) {
    test(`and ${how} is caught`, async () => {
      const report = await checkStrategy(
        strategyOf(() => answer),
        undefined,
        { scenarios: ['decisions'] },
      )
      expect(messages(report)).toMatch(message)
    })
  }

  test('and holds every step back is caught at the barrier, too', async () => {
    const slow = strategyOf(({ boundary }) => ({ kind: 'flush', delayMs: boundary === 'step' ? 150 : 0 }))
    const report = await checkStrategy(slow, undefined, { maxWaitMs: 100, scenarios: ['guarantees'] })
    expect(messages(report)).toMatch(/guarantees: the agent was held for \d+ ms at `step` besides the flush itself/)
  })
})

describe('a strategy that starts a write and forgets it', () => {
  const starts = strategyOf(() => ({ kind: 'start' }))

  test('is caught at the effect where the policy lets it', async () => {
    const report = await checkStrategy(starts, undefined, allowed)
    expect(messages(report)).toMatch(
      /guarantees: a request reached the model while \d+ event\(s\) recorded ahead of it were not on disk/,
    )
    expect(messages(report)).toMatch(/guarantees: the body of tool "write" began before its call was on disk/)
  })

  test('is caught by its answers where the policy overrules it', async () => {
    expect(messages(await checkStrategy(starts))).toMatch(/decisions: decide answered "start" at `(request|tool)`/)
  })
})

describe('a strategy that throws at random', () => {
  test('is caught, with its own error', async () => {
    const throws = strategyOf(() => {
      if (Math.random() < 0.2) throw new RangeError('lost my way')
      return FLUSH
    })
    expect(messages(await checkStrategy(throws))).toMatch(/decisions: decide threw at `\w+`.*: RangeError: lost my way/)
  })

  test('is caught in the interleavings when it throws under the host only', async () => {
    let asked = 0
    const throwsLate = strategyOf(() => {
      asked += 1
      if (asked > 560 && asked % 40 === 0) throw new Error('late')
      return FLUSH
    })
    const report = await checkStrategy(throwsLate, undefined, { rounds: 10, seed: 7 })
    expect(report.ok).toBe(false)
    expect(messages(report)).toMatch(/decide threw at `\w+`/)
  })
})

describe('a plugin that is no strategy', () => {
  const plugins: [what: string, plugin: object, message: RegExp][] = [
    ['provides nothing', { name: 'x', apply() {} }, /loading: the plugin does not provide a strategy/],
    [
      'provides no decide',
      { name: 'x', apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name: 'x' } as never) },
      /loading: the plugin does not provide a strategy/,
    ],
    [
      'never loads',
      { name: 'x', apply: () => new Promise(() => {}) },
      /loading: mounting the strategy did not end within/,
    ],
    [
      'throws while it loads',
      {
        name: 'x',
        apply() {
          throw new Error('no disk')
        },
      },
      /loading: unexpected error: Error: no disk/,
    ],
    [
      'provides it to the whole application',
      {
        name: 'x',
        apply: (ctx: Context) => void ctx.root.provide('checkpointStrategy', { name: 'x', decide: () => FLUSH }),
      },
      /loading: the strategy stays after its plugin was unmounted/,
    ],
  ]
  for (const [what, plugin, message] of plugins) {
    test(`and ${what} is caught`, async () => {
      expect(messages(await checkStrategy(plugin))).toMatch(message)
    })
  }
})

describe('a promise that nobody handles', () => {
  test('is caught, whichever scenario runs', async () => {
    const leaks = strategyOf(() => {
      void Promise.reject(new Error('forgotten'))
      return FLUSH
    })
    const listeners = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection')
    try {
      const report = await checkStrategy(leaks, undefined, { scenarios: ['decisions'] })
      expect(messages(report)).toMatch(/decisions: a promise was rejected and nobody handled it: Error: forgotten/)
    } finally {
      for (const listener of listeners) process.on('unhandledRejection', listener)
    }
  })
})

describe('the report', () => {
  test('of a strategy that releases only what it may names the strategy, the seed, each scenario and what was left out', async () => {
    const decide = ({ toolName }: Barrier) => (toolName === 'read' ? { kind: 'skip', reason: 'harmless' } : FLUSH)
    const report = await checkStrategy(strategyOf(decide, 'plain'), undefined, {
      ...allowed,
      mayRelease: ['read'],
      rounds: 2,
      seed: 42,
    })
    expect(messages(report)).toBe('')
    expect(report.ok).toBe(true)
    const text = String(report)
    expect(text).toContain('strategy "plain" conforms (seed 42)')
    expect(text).toMatch(/passed {2}interleavings/)
    expect(text).toMatch(/skipped crash \(0 ms\): give the URL of the strategy module/)
    expect(report.scenarios.map(({ name }) => name)).toEqual([
      'loading',
      'decisions',
      'guarantees',
      'cancellation',
      'failures',
      'disposal',
      'traffic',
      'interleavings',
      'crash',
    ])
  })

  test('is registered with a test runner as one test per scenario, which fails with the sentence', async () => {
    const tests: [string, () => Promise<void>][] = []
    const runner = {
      describe: (_: string, body: () => void) => body(),
      it: (title: string, body: () => Promise<void>) => void tests.push([title, body]),
    }
    describeStrategy(
      runner,
      'x',
      strategyOf(() => undefined),
      undefined,
      { scenarios: ['loading', 'decisions'], seed: 3 },
    )
    expect(tests.map(([title]) => title)).toEqual(['conforms: loading', 'conforms: decisions'])
    await expect(tests[0]?.[1]()).resolves.toBeUndefined()
    await expect(tests[1]?.[1]()).rejects.toThrow(
      /decide answered undefined, which is no decision at .* \(500 times\)\n\(seed 3\)/,
    )
  })

  it('is refused for a module without a plugin', async () => {
    await expect(checkStrategy(new URL('../src/semconv.ts', import.meta.url))).rejects.toThrow(
      /semconv\.ts: a strategy module must have a plugin as its default export/,
    )
  })
})
