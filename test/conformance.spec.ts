import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { describeStrategy, type SuiteOptions } from '../src/testing/index.ts'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { exports: object }
const PREFIX = './strategies/'
const shipped = Object.keys(exports)
  .filter((subpath) => subpath.startsWith(PREFIX))
  .map((subpath) => subpath.slice(PREFIX.length))

/** More rounds on demand: DSH_CHECKPOINT_ROUNDS=500. */
const rounds = Number(process.env['DSH_CHECKPOINT_ROUNDS'] ?? 15)
const intensity: SuiteOptions = { rounds, kills: Math.max(2, Math.round(rounds / 10)) }

/** What a strategy needs to run at all; one that is not listed runs with an empty config and on its own promise. */
const needs: Record<string, { config: object; options: SuiteOptions }> = {
  selective: { config: { tools: ['read'] }, options: { policy: { allowUnguarded: true }, mayRelease: ['read'] } },
}

describe('the shipped strategies', () => {
  it('are the plugins in src/strategies, each on a subpath of its own', () => {
    const plugins = readdirSync(new URL('../src/strategies', import.meta.url))
      .map((file) => file.replace(/\.ts$/, ''))
      .filter((name) => !['scope', 'group'].includes(name))
    expect(shipped.toSorted()).toEqual(plugins.toSorted())
  })

  for (const name of shipped) {
    const { config = {}, options = {} } = needs[name] ?? {}
    const module = new URL(`../src/strategies/${name}.ts`, import.meta.url)
    describeStrategy({ describe, it }, name, module, config, { ...intensity, ...options })
  }
})

describe('the strategy of the README', () => {
  const module = new URL('./fixtures/strategies/bounded-subagents.ts', import.meta.url)
  describeStrategy({ describe, it }, 'bounded-subagents', module, undefined, {
    rounds: 5,
    kills: 1,
    scenarios: ['loading', 'decisions', 'guarantees', 'interleavings', 'crash'],
  })
})
