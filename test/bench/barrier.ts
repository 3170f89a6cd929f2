/**
 * What one barrier costs, next to the stock policy, in one run: `npm run bench`.
 *
 * The flush itself is a resolved promise, so that what is left is the policy. Variants take turns in shuffled rounds and
 * the medians of their rounds are compared; a ratio is the median over rounds of (variant / stock) within one round.
 */
import { parseArgs } from 'node:util'
import { Context } from '@deepseek-ai/cordis'
import AgentRegistry from '@deepseek-ai/dsh-agent'
import LlmRuntime, { type StreamChunk } from '@deepseek-ai/dsh-llm'
import SessionStore, { SessionId, type Session } from '@deepseek-ai/dsh-session'
import * as stock from '@deepseek-ai/dsh-session-checkpoint-policy'
import SystemPrompt from '@deepseek-ai/dsh-system-prompt'
import ToolRuntime from '@deepseek-ai/dsh-tools'
import { context, metrics, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from '@opentelemetry/sdk-trace'
import Table from 'cli-table3'
import * as policy from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import { ScriptedModel, textChunks } from '../../src/testing/harness.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '40' },
    batch: { type: 'string', default: '500' },
    json: { type: 'boolean', default: false },
    heap: { type: 'string', default: '1000000' },
  },
})
const ROUNDS = Number(values.rounds)
const BATCH = Number(values.batch)

/** One application whose flush costs nothing. */
interface Variant {
  readonly name: string
  readonly sdk: 'none' | 'full'
  /** Open a turn, so that its span is a parent as in a real run. */
  startTurn(): void
  readonly run: Record<'request' | 'tool' | 'step', (count: number) => Promise<void>>
}

const strategy = {
  name: 'bench-strategy',
  apply(ctx: Context) {
    ctx.provide('checkpointStrategy', { name: 'bench', decide: () => ({ kind: 'flush' }) })
  },
}
const observers = {
  name: 'bench-observers',
  inject: ['checkpoints'],
  apply(ctx: Context) {
    let seen = 0
    for (let i = 0; i < 2; i += 1) ctx.effect(() => ctx.checkpoints.observe(() => void (seen += 1)))
  },
}

async function createVariant(
  name: string,
  sdk: Variant['sdk'],
  plugins: readonly object[],
  configured?: readonly [plugin: object, config: unknown],
): Promise<Variant> {
  const ctx = new Context()
  for (const plugin of [SystemPrompt, LlmRuntime, SessionStore]) await mount(plugin)
  await mount(ToolRuntime, {})
  await mount(AgentRegistry)
  await mount({ name: 'instant-backend', apply: (scope: Context) => scope.provide('sessionPersistence', {}) })
  ctx.on('session/flush', () => Promise.resolve())
  for (const plugin of plugins) await mount(plugin)
  if (configured !== undefined) await mount(...configured)
  ctx.llm.registerAdapter(['scripted'], new ScriptedModel())
  const session: Session = ctx.sessions.create(SessionId(`bench-${name}`))
  const agent = { id: session.id, session } as never
  const signal = new AbortController().signal
  const result = { content: [], isError: false }
  const chunks = [...textChunks('x')]
  async function* inner(): AsyncIterable<StreamChunk> {
    yield* chunks
  }
  return {
    name,
    sdk,
    startTurn: () => void session.append('turn/start', { turn: 1 }),
    run: {
      async request(count) {
        const options = { provider: 'scripted', model: 'm', messages: [], sessionId: session.id, signal } as never
        for (let i = 0; i < count; i += 1) {
          const stream = ctx.waterfall(ctx.llm as never, 'llm/stream', options, inner)
          const iterator = stream[Symbol.asyncIterator]()
          await iterator.next()
          await iterator.return?.()
        }
      },
      async tool(count) {
        for (let i = 0; i < count; i += 1) {
          const exec = { callId: 'c', rootCallId: 'c', name: 't', arguments: {}, agent, signal } as never
          await ctx.waterfall(ctx.tools as never, 'tools/execute', exec, async () => result as never)
        }
      },
      async step(count) {
        for (let i = 0; i < count; i += 1) {
          const payload = { agent, messages: [], turn: 1, step: 1, signal } as never
          await ctx.waterfall(agent, 'agent/pre-step', payload, async () => ({ kind: 'enter', messages: [] }) as never)
        }
      },
    },
  }

  async function mount(plugin: object, config?: unknown): Promise<void> {
    await (ctx.plugin(plugin as never, config as never) as unknown as { await(): Promise<unknown> }).await()
  }
}

const sink: SpanExporter = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} }
function registerSdk(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter: sink })] }))
  const reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
    exportIntervalMillis: 60_000,
  })
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
}
function unregisterSdk(): void {
  for (const api of [context, trace, metrics]) api.disable()
}

const variants = [
  await createVariant('none', 'none', []),
  await createVariant('stock', 'none', [stock]),
  await createVariant('ours, API only', 'none', [policy]),
  await createVariant('ours, strategy and two observers', 'none', [policy, strategy, observers]),
  await createVariant('ours, SDK spans and metrics', 'full', [policy]),
  await createVariant('ours, SDK, strategy, two observers', 'full', [policy, strategy, observers]),
  await createVariant('ours, /metrics', 'none', [policy], [prometheus, { port: 0 }]),
  await createVariant('ours, SDK and /metrics', 'full', [policy], [prometheus, { port: 0 }]),
]
const BOUNDARIES = ['request', 'tool', 'step'] as const
const microseconds = new Map<string, number[]>()
const key = (variant: Variant, boundary: string) => `${variant.name}|${boundary}`

for (let round = -3; round < ROUNDS; round += 1) {
  if (process.stderr.isTTY) process.stderr.write(`\rround ${Math.max(0, round + 1)} of ${ROUNDS} `)
  for (const variant of shuffle(variants)) {
    if (variant.sdk === 'full') registerSdk()
    variant.startTurn()
    for (const boundary of shuffle([...BOUNDARIES])) {
      // The provider is new each time: the first barrier makes instruments, which is not the steady state.
      await variant.run[boundary](20)
      const start = process.hrtime.bigint()
      await variant.run[boundary](BATCH)
      const each = Number(process.hrtime.bigint() - start) / 1_000 / BATCH
      if (round >= 0)
        microseconds.set(key(variant, boundary), [...(microseconds.get(key(variant, boundary)) ?? []), each])
    }
    if (variant.sdk === 'full') unregisterSdk()
  }
}
if (process.stderr.isTTY) process.stderr.write('\n')

const rows = variants.map((variant) => ({
  variant: variant.name,
  boundaries: Object.fromEntries(
    BOUNDARIES.map((boundary) => {
      const own = microseconds.get(key(variant, boundary)) ?? []
      const stockRounds = microseconds.get(`stock|${boundary}`) ?? []
      const ratios = own.map((value, round) => value / (stockRounds[round] ?? Number.NaN))
      return [boundary, { medianMicroseconds: median(own), ratioToStock: median(ratios) }]
    }),
  ),
}))
const report = {
  node: process.version,
  rounds: ROUNDS,
  batch: BATCH,
  rows,
  chunk: await chunkCost(),
  heap: await heapPerBarrier(),
}
if (values.json) console.log(JSON.stringify(report, null, 2))
else print(report)
process.exit(0)

/** Cost of one chunk pulled through the policy, against the bare stream and the stock policy. */
async function chunkCost() {
  const CHUNKS = 20_000
  async function* many(): AsyncIterable<StreamChunk> {
    for (let i = 0; i < CHUNKS; i += 1) yield { type: 'text-delta', index: 0, text: 'x' }
  }
  const apps = await Promise.all(
    [
      ['none', []],
      ['stock', [stock]],
      ['ours', [policy]],
    ].map(async ([name, plugins]) => {
      const ctx = new Context()
      for (const [plugin, config] of [
        [SystemPrompt],
        [LlmRuntime],
        [SessionStore],
        [ToolRuntime, {}],
        [AgentRegistry],
      ] as const) {
        await (ctx.plugin(plugin as never, config as never) as unknown as { await(): Promise<unknown> }).await()
      }
      ctx.provide('sessionPersistence', {})
      ctx.on('session/flush', () => Promise.resolve())
      for (const plugin of plugins as object[])
        await (ctx.plugin(plugin as never, undefined as never) as unknown as { await(): Promise<unknown> }).await()
      const session = ctx.sessions.create(SessionId(`chunks-${String(name)}`))
      return { name: String(name), ctx, session, nanos: [] as number[] }
    }),
  )
  for (let round = -2; round < 15; round += 1) {
    for (const app of shuffle(apps)) {
      const stream = app.ctx.waterfall(
        app.ctx.llm as never,
        'llm/stream',
        { provider: 's', model: 'm', messages: [], sessionId: app.session.id } as never,
        many,
      )
      const start = process.hrtime.bigint()
      for await (const chunk of stream) void chunk
      if (round >= 0) app.nanos.push(Number(process.hrtime.bigint() - start) / CHUNKS)
    }
  }
  return Object.fromEntries(apps.map((app) => [app.name, median(app.nanos)]))
}

/** Bytes that stay on the heap for each barrier, over many. */
async function heapPerBarrier() {
  const count = Number(values.heap)
  if (globalThis.gc === undefined || count === 0) return undefined
  const variant = await createVariant('heap', 'none', [policy])
  await variant.run.tool(50_000)
  globalThis.gc()
  const before = process.memoryUsage().heapUsed
  await variant.run.tool(count)
  await new Promise((resolve) => setImmediate(resolve))
  globalThis.gc()
  return { barriers: count, bytesEach: (process.memoryUsage().heapUsed - before) / count }
}

function print({ chunk, heap, ...head }: typeof report): void {
  console.log(
    `Node ${head.node}, ${head.rounds} shuffled rounds of ${head.batch} barriers; µs per barrier (ratio to stock)`,
  )
  const table = new Table({ head: ['variant', ...BOUNDARIES], style: { head: [], border: [] } })
  for (const { variant, boundaries } of head.rows) {
    table.push([
      variant,
      ...BOUNDARIES.map((boundary) => {
        const cell = boundaries[boundary]
        return `${cell?.medianMicroseconds.toFixed(1)} (${cell?.ratioToStock.toFixed(2)})`
      }),
    ])
  }
  console.log(table.toString())
  console.log(
    `per stream chunk, ns: ${Object.entries(chunk)
      .map(([name, nanos]) => `${name} ${nanos.toFixed(0)}`)
      .join(', ')}`,
  )
  console.log(
    heap === undefined
      ? 'heap: run with --expose-gc'
      : `heap: ${heap.bytesEach.toFixed(3)} bytes kept per barrier over ${heap.barriers}`,
  )
}

function median(list: readonly number[]): number {
  const sorted = [...list].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

function shuffle<T>(list: readonly T[]): T[] {
  const copy = [...list]
  for (let i = copy.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[copy[i], copy[j]] = [copy[j] as T, copy[i] as T]
  }
  return copy
}
