/**
 * Runs inside a folder that holds one host set and the unpacked policy, and prints what happened as JSON: a turn with a
 * tool, a rejected flush, a call cancelled while its flush hangs, and the resume of a log as a crash would leave it.
 */
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { setImmediate as nextRound } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import { metrics, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { CheckpointRecord } from '../../src/barrier.ts'
import type { Harness } from '../../src/testing/harness.ts'

/** What one host showed. */
export interface CompatReport {
  /** Releases that the policy found: Cordis, session core, OpenTelemetry API. */
  readonly releases: readonly string[]
  /** Kinds of files the backend left. */
  readonly files: readonly string[]
  readonly records: readonly string[]
  /** Bodies that ran, requests that reached the adapter. */
  readonly bodies: number
  readonly requests: number
  readonly results: readonly string[]
  readonly spans: Readonly<Record<string, number>>
  readonly metrics: readonly string[]
  readonly warnings: readonly string[]
  readonly unhandled: readonly string[]
}

const ours = (file: string) =>
  pathToFileURL(join(import.meta.dirname, 'node_modules/dsh-checkpoint-otel/dist', file)).href
const { createHarness, createTool, ScriptedModel } = (await import(
  ours('testing/harness.js')
)) as typeof import('../../src/testing/harness.ts')
const policy = (await import(ours('index.js'))) as typeof import('../../src/index.ts')

const spans = new InMemorySpanExporter()
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }))
const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: points })] })
metrics.setGlobalMeterProvider(meters)

const unhandled: string[] = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))
const records: string[] = []
const warnings: string[] = []
const root = join(import.meta.dirname, 'sessions')
const crashed = join(import.meta.dirname, 'crashed')
let onFlush: (() => unknown) | undefined
let onBody: (() => void) | undefined
let bodies = 0

const control = {
  name: 'control',
  apply(ctx: Context) {
    ctx.logger.exporter({
      levels: { default: 2 },
      export: ({ args }) => void warnings.push(args.map(String).join(' ')),
    })
    ctx.on('session/flush', () => onFlush?.() as Promise<void>)
  },
}
const listener = {
  name: 'listener',
  inject: ['checkpoints'],
  apply: (ctx: Context) => void ctx.effect(() => ctx.checkpoints.observe((record) => void records.push(line(record)))),
}
const work = createTool('work', () => {
  bodies += 1
  onBody?.()
})
const call = (id: string) => [{ name: 'work', id }]
const model = new ScriptedModel([
  call('plain'),
  'done',
  call('rejected'),
  'done',
  call('aborted'),
  call('crashed'),
  'done',
])
const plugins = [[control], [policy, {}], [listener]] as const
const harness = await createHarness({ root, compression: 'none', model, tools: [work], plugins })
const { agent } = await harness.createAgent('compat')
const results: string[] = []
harness.ctx.on('session/event', (_session, event) => {
  if (event.type === 'turn/end') results.push(`turn ${event.data.turn}: ${event.data.reason?.kind}`)
  if (event.type !== 'tool/result') return
  const { error, message } = event.data
  const text = message.content
    .flatMap((block) => block.content)
    .map((block) => (block.type === 'text' ? block.text : block.type))
  results.push(`${message.source.callId}: ${error?.code ?? text.join()}`)
})

await harness.say(agent, 'a call')

model.onRequest = () => {
  model.onRequest = undefined
  onFlush = () => {
    onFlush = undefined
    throw Object.assign(new Error('disk full'), { code: 'ENOSPC' })
  }
}
await harness.say(agent, 'a call whose flush is rejected')

const { promise: hung, resolve: settle } = Promise.withResolvers<void>()
model.onRequest = () => {
  model.onRequest = undefined
  onFlush = () => {
    onFlush = undefined
    setImmediate(() => agent.cancel({ kind: 'user' } as never))
    return hung
  }
}
await harness.say(agent, 'a call that is cancelled while its flush hangs')
settle()

onBody = () => cpSync(root, crashed, { recursive: true })
await harness.say(agent, 'a call that the crash interrupts')
onBody = undefined
await settled(harness)
await harness.dispose()

records.push('-- resumed')
const again = await createHarness({
  root: crashed,
  compression: 'none',
  model: new ScriptedModel(),
  tools: [work],
  plugins,
})
const resumed = await again.resumeAgent('compat')
await again.say(resumed.agent, 'go on')
await settled(again)
// While the policy is there: the last export of an application that ends says nothing about it.
await meters.forceFlush()
await again.dispose()

const report: CompatReport = {
  releases: ['@deepseek-ai/cordis', '@deepseek-ai/dsh-session', '@opentelemetry/api'].map(releaseOf),
  files: [...new Set(readdirSync(root, { recursive: true }).map((file) => extname(String(file))))]
    .filter(Boolean)
    .toSorted(),
  records,
  bodies,
  requests: model.requests.length,
  results,
  spans: count(spans.getFinishedSpans().map((span) => span.name)),
  metrics: [
    ...new Set(
      points
        .getMetrics()
        .flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap((scope) => scope.metrics.map((metric) => metric.descriptor.name)),
        ),
    ),
  ].toSorted(),
  warnings,
  unhandled,
}
console.log(JSON.stringify(report))

function releaseOf(name: string): string {
  const manifest = readFileSync(join(import.meta.dirname, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

/** The write that a turn's end started. */
async function settled(app: Harness): Promise<void> {
  do await nextRound()
  while (app.ctx.checkpoints.open().length > 0)
}

function line(record: CheckpointRecord): string {
  if (record.kind === 'recovered') return `recovered ${record.callId}: ${record.recovery}`
  const { turn, step, boundary, outcome, flushOutcome, errorType } = record
  return `${turn}.${step} ${boundary}: ${outcome}, ${flushOutcome}${errorType === undefined ? '' : `, ${errorType}`}`
}

function count(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
