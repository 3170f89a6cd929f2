/** The pipeline when its parts come and go: a collector killed under load, agents that restart, agents that are quiet. */
import { trace } from '@opentelemetry/api'
import { expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import * as sc from '../src/semconv.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, summary, type App } from './support/app.ts'
import { BUILT, startBackend, startCollector, startPrometheus, TAIL_SAMPLING } from './support/pipeline.ts'
import { PROMETHEUS_INSTALLED } from './support/prometheus-server.ts'
import { requirement } from './support/require.ts'

const hasCollector = requirement(
  'the collector of the pipeline tests (run test/collector/build.sh, needs Go 1.26)',
  BUILT,
)
const hasPrometheus = requirement('prometheus and promtool (apt-get install prometheus)', PROMETHEUS_INSTALLED)
const WAIT = { timeout: 30_000, interval: 250 }

/** Turns after which everything begins again. */
const PERIOD = 20

/** An app of which one turn in each period has a tool call whose flush fails. */
async function createLoad() {
  const app = await createApp({
    model: new ScriptedModel(),
    tools: [createTool('write', () => 'written')],
    plugins: [[policy, { turnBoundary: false }]],
  })
  let turns = 0
  let agent: Awaited<ReturnType<App['createAgent']>>['agent'] | undefined
  const turn = async () => {
    // A short log is a fast log.
    if (turns % 50 === 0) ({ agent } = await app.createAgent())
    if (agent === undefined) throw new Error('no agent')
    const isAtTool = () => app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')
    app.flushes.on = turns % PERIOD === 11 ? () => isAtTool() && Promise.reject(storageError('EIO')) : undefined
    app.model.push([{ name: 'write' }])
    await app.say(agent, 'hi')
    turns += 1
  }
  /** Turns until `barriers` more have settled; their records. */
  const load = async (barriers: number, at: Readonly<Record<number, () => Promise<void>>> = {}) => {
    const from = app.barriers().length
    const events = Object.entries(at).map(([count, action]) => [Number(count), action] as const)
    while (app.barriers().length - from < barriers) {
      // In whole periods, so that any two loads are alike.
      for (let index = 0; index < PERIOD; index += 1) await turn()
      while (events.length > 0 && app.barriers().length - from >= (events[0]?.[0] ?? Infinity))
        await events.shift()?.[1]()
    }
    return app.barriers().slice(from)
  }
  return { app, load }
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** A counter of the collector's own exposition, summed over its series. */
async function exposed(port: number, family: string, filter = ''): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`${family}{`) && line.includes(filter))
  return lines.reduce((sum, line) => sum + Number(/} ([\d.e+-]+)/.exec(line)?.[1]), 0)
}

const COUNT = 'dsh_checkpoint_barrier_duration_seconds_count'

test.skipIf(!hasCollector)(
  '10,000 barriers do not notice that the collector is killed and comes back',
  { timeout: 240_000 },
  async () => {
    const collector = await startCollector()
    const { app, load } = await createLoad()
    await load(500)
    const before = await load(5_000)
    const sdk = await app.mount(nodeSdk, { endpoint: collector.otlp, metricsIntervalMs: 500, exportTimeoutMs: 1_000 })
    const memory = process.memoryUsage().heapUsed
    const under = await load(10_000, { 2_500: collector.kill, 6_000: collector.start })
    const grownMiB = (process.memoryUsage().heapUsed - memory) / 2 ** 20
    // The counters are cumulative: the collector that forgot everything has all of it again.
    await vi.waitFor(async () => expect(await exposed(collector.port, COUNT)).toBe(under.length), WAIT)
    await sdk.dispose()
    const after = await load(5_000)

    const period = summary(before.slice(0, PERIOD * 5))
    expect(period.some((line) => line === 'tool:rejected:rejected')).toBe(true)
    const rejected = (barriers: typeof before) =>
      barriers.filter(({ outcome }) => outcome === 'rejected').length / barriers.length
    expect(summary(under).slice(0, before.length)).toEqual(summary(before).slice(0, under.length))
    expect(rejected(under)).toBeCloseTo(rejected([...before, ...after]), 9)
    expect([...new Set(summary(under))].sort()).toEqual([...new Set(summary(before))].sort())
    expect(app.logs.filter((line) => line.startsWith('OpenTelemetry')).length).toBeLessThanOrEqual(4)
    // Ten thousand records that the test keeps are in it.
    expect(grownMiB).toBeLessThan(150)
    // Said and not judged: how long things take belongs to a benchmark on a quiet machine.
    const ratio =
      median(under.map(({ durationMs }) => durationMs)) /
      median([...before, ...after].map(({ durationMs }) => durationMs))
    console.log(
      `median barrier under telemetry with the collector away and back: ${ratio.toFixed(3)} of the one without; heap ${grownMiB.toFixed(0)} MiB`,
    )
  },
)

test.skipIf(!hasCollector || !hasPrometheus)(
  'counts stay right when agents restart and when they are quiet',
  { timeout: 90_000 },
  async () => {
    const collector = await startCollector({ overrides: ['connectors::span_metrics::metrics_flush_interval: 500ms'] })
    const prometheus = await startPrometheus('prometheus', [
      { job: 'collector', port: collector.port, honorLabels: true },
    ])
    const { app, load } = await createLoad()
    let total = 0
    for (let life = 0; life < 3; life += 1) {
      // The SDK makes one up for each process.
      vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', `service.instance.id=process-${life}`)
      const sdk = await app.mount(nodeSdk, { endpoint: collector.otlp, metricsIntervalMs: 500 })
      total += (await load(100)).length
      await sdk.dispose()
    }
    vi.unstubAllEnvs()
    const sums = async (at?: number) =>
      Promise.all(
        [`sum(${COUNT})`, 'sum(traces_span_metrics_calls_total{span_name=~"checkpoint .+"})'].map(async (query) =>
          Number((await prometheus.query(query, at))[0]?.value?.[1]),
        ),
      )
    await vi.waitFor(async () => expect(await sums()).toEqual([total, total]), WAIT)
    const instances = await prometheus.query(`count(count by (instance) (${COUNT}))`)
    expect(instances[0]?.value?.[1]).toBe('3')
    // One series each, whichever process it was: a second one would show as a drop or a jump.
    expect(
      await prometheus.query(
        'count by (span_name, dsh_checkpoint_boundary, dsh_checkpoint_outcome, status_code) (traces_span_metrics_calls_total) > 1',
      ),
    ).toEqual([])
    // Quiet for several intervals of everything: nothing is lost, nothing is added.
    const quietFrom = Date.now() / 1_000
    await vi.waitFor(() => expect(Date.now() / 1_000 - quietFrom).toBeGreaterThan(4), WAIT)
    expect(await sums()).toEqual([total, total])
    const resets = await prometheus.query('sum(resets(traces_span_metrics_calls_total[1m]))')
    expect(Number(resets[0]?.value?.[1])).toBe(0)
  },
)

test.skipIf(!hasCollector)(
  'tail sampling keeps the rejected and the recovered turns and few of the others; metrics count them all',
  { timeout: 90_000 },
  async () => {
    const backend = await startBackend()
    const collector = await startCollector({
      files: [TAIL_SAMPLING],
      traces: backend.endpoint,
      overrides: [
        'connectors::span_metrics::metrics_flush_interval: 500ms',
        'exporters::otlp_http::encoding: json',
        'processors::tail_sampling::decision_wait_after_root_received: 1s',
      ],
    })
    const { app, load } = await createLoad()
    const sdk = await app.mount(nodeSdk, { endpoint: collector.otlp, metricsIntervalMs: 500 })
    const barriers = await load(1_000)
    const tracesOf = (kept: typeof barriers) => new Set(kept.map(({ traceId }) => traceId ?? ''))
    // What the policy says of a resumed session, here of a trace of its own.
    const resumed = trace
      .getTracer('resumed')
      .startSpan('agent turn', { attributes: { [sc.ATTR_RECOVERY]: sc.RECOVERIES[0] } })
    resumed.end()
    await sdk.dispose()
    const rejected = tracesOf(barriers.filter(({ outcome }) => outcome === 'rejected'))
    const slow = tracesOf(barriers.filter(({ durationMs }) => durationMs >= 500))
    expect(rejected.size).toBeGreaterThan(5)
    const kept = () => new Set([...backend.bodies.join('').matchAll(/"traceId":"(\w+)"/g)].map(([, id]) => id ?? ''))
    await vi.waitFor(() => {
      for (const traceId of [...rejected, ...slow, resumed.spanContext().traceId]) expect(kept()).toContain(traceId)
    }, WAIT)
    expect(kept().size).toBeLessThan(tracesOf(barriers).size / 2)
    await vi.waitFor(async () => {
      expect(await exposed(collector.port, 'traces_span_metrics_calls_total', 'span_name="checkpoint ')).toBe(
        barriers.length,
      )
    }, WAIT)
  },
)
