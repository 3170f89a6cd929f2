/**
 * How long an agent waits for durability over a turn, on this disk: stock policy, ours, and each strategy, in shuffled
 * rounds of one run. Part of `npm run bench`.
 *
 * Waiting is measured from outside, the same way for every variant: a hook around the policy and one behind it mark when
 * each wait began and ended; waits that overlap count once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import * as stock from '@deepseek-ai/dsh-session-checkpoint-policy'
import Table from 'cli-table3'
import * as policy from '../../src/index.ts'
import coalesced from '../../src/strategies/coalesced.ts'
import pipelined from '../../src/strategies/pipelined.ts'
import { createHarness, createTool, ScriptedModel } from '../../src/testing/harness.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    steps: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
})
const ROUNDS = Number(values.rounds)
const STEPS = Number(values.steps)

type Plugins = readonly (readonly [object, unknown?])[]
const VARIANTS: Record<string, Plugins> = {
  stock: [[stock]],
  default: [[policy, {}]],
  coalesced: [[policy, {}], [coalesced, {}]],
  pipelined: [[policy, {}], [pipelined, {}]],
}
const WORKLOADS = {
  'one call per step': { calls: 1, assemblyMs: 0 },
  'four parallel calls': { calls: 4, assemblyMs: 0 },
  'one call, 3 ms of prompt assembly': { calls: 1, assemblyMs: 3 },
} as const
type Workload = keyof typeof WORKLOADS

/** Milliseconds waited in one turn; overlapping waits count once. */
async function waitedMs(plugins: Plugins, { calls, assemblyMs }: { calls: number; assemblyMs: number }): Promise<number> {
  const root = mkdtempSync(join(tmpdir(), 'dsh-checkpoint-bench-'))
  let waiting = 0
  let since = 0
  let total = 0
  const begin = () => {
    if (waiting === 0) since = performance.now()
    waiting += 1
  }
  const end = () => {
    waiting -= 1
    if (waiting === 0) total += performance.now() - since
  }
  const outer = {
    name: 'bench-outer',
    apply(ctx: Context) {
      ctx.on('tools/execute', (_exec, next) => (begin(), next()))
      ctx.on('agent/pre-step', (_payload, next) => (begin(), next()))
      ctx.on('llm/stream', (_options, next) => {
        const inner = next()[Symbol.asyncIterator]()
        let first = true
        return {
          [Symbol.asyncIterator]: () => ({
            next: () => {
              if (first) begin()
              first = false
              return inner.next()
            },
            return: async () => inner.return?.() ?? { done: true, value: undefined },
          }),
        }
      })
    },
  }
  const inner = {
    name: 'bench-inner',
    apply(ctx: Context) {
      ctx.on('tools/execute', (_exec, next) => (end(), next()))
      ctx.on('agent/pre-step', (_payload, next) => (end(), next()))
      ctx.on('llm/stream', (_options, next) => (end(), next()))
      if (assemblyMs > 0) {
        // Between the step's barrier and the request's, where a host puts the prompt together.
        ctx.on('agent/request', async (_payload, next) => {
          await new Promise((resolve) => setTimeout(resolve, assemblyMs))
          return next()
        })
      }
    },
  }
  const answer = Array.from({ length: calls }, () => ({ name: 'work' }))
  const harness = await createHarness({
    root,
    compression: 'none',
    model: new ScriptedModel(Array.from({ length: STEPS }, () => answer)),
    tools: [createTool('work', () => 'ok', { parallel: true })],
    plugins: [[outer], ...plugins, [inner]],
  })
  const { agent } = await harness.createAgent()
  await harness.say(agent, 'go')
  await harness.dispose()
  rmSync(root, { recursive: true, force: true })
  return total
}

const waited = new Map<string, number[]>()
const key = (workload: string, variant: string) => `${workload}|${variant}`
for (let round = -1; round < ROUNDS; round += 1) {
  for (const workload of Object.keys(WORKLOADS) as Workload[]) {
    for (const variant of Object.keys(VARIANTS).toSorted(() => Math.random() - 0.5)) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[Kround ${Math.max(0, round + 1)} of ${ROUNDS}: ${workload}, ${variant}`)
      const ms = await waitedMs(VARIANTS[variant] ?? [], WORKLOADS[workload])
      if (round >= 0) waited.set(key(workload, variant), [...(waited.get(key(workload, variant)) ?? []), ms])
    }
  }
}
if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')

const rows = (Object.keys(WORKLOADS) as Workload[]).map((workload) => ({
  workload,
  variants: Object.keys(VARIANTS).map((variant) => {
    const own = waited.get(key(workload, variant)) ?? []
    const reference = waited.get(key(workload, 'stock')) ?? []
    const ratios = own.map((ms, round) => ms / (reference[round] ?? Number.NaN)).toSorted((a, b) => a - b)
    return { variant, medianMs: median(own), ratioToStock: median(ratios), low: ratios[0], high: ratios.at(-1) }
  }),
}))
if (values.json) console.log(JSON.stringify({ node: process.version, rounds: ROUNDS, steps: STEPS, rows }, null, 2))
else {
  console.log(`Waiting over a turn of ${STEPS} steps, ms (ratio to stock, lowest and highest round); ${ROUNDS} shuffled rounds`)
  const table = new Table({ head: ['workload', ...Object.keys(VARIANTS)], style: { head: [], border: [] } })
  for (const { workload, variants } of rows) {
    table.push([
      workload,
      ...variants.map(({ medianMs, ratioToStock, low, high }) => `${medianMs.toFixed(0)} (${ratioToStock.toFixed(2)}: ${low?.toFixed(2)} to ${high?.toFixed(2)})`),
    ])
  }
  console.log(table.toString())
}

function median(list: readonly number[]): number {
  const sorted = [...list].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}
