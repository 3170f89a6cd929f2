/** A real agent, a real collector on the shipped file, and Prometheus: the same numbers under the same names on every path. */
import { spawnSync } from 'node:child_process'
import { trace } from '@opentelemetry/api'
import { describe, expect, test, vi } from 'vitest'
import * as nodeSdk from '../src/node-sdk.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { withoutData } from './support/dashboard-queries.ts'
import { createMixedApp } from './support/mixed-run.ts'
import {
  BUILT,
  COLLECTOR,
  CONFIG,
  PROMETHEUS,
  startBackend,
  startCollector,
  startPrometheus,
  startTee,
  TAIL_SAMPLING,
} from './support/pipeline.ts'
import { PROMETHEUS_INSTALLED, type PrometheusApi } from './support/prometheus-server.ts'
import { requirement } from './support/require.ts'
import { freePort } from './support/scrape.ts'

const hasCollector = requirement(
  'the collector and Prometheus of the pipeline tests (run test/collector/build.sh, needs Go 1.26)',
  BUILT,
)
const hasPrometheus = requirement('prometheus and promtool (apt-get install prometheus)', PROMETHEUS_INSTALLED)

const SERVICE = 'pipeline-test'
const WAIT = { timeout: 30_000, interval: 250 }
/** Short, or the test would wait for a quarter of a minute. */
const FAST = ['connectors::span_metrics::metrics_flush_interval: 1s', 'exporters::otlp_http::encoding: json']

const label = (attribute: string) => attribute.replaceAll('.', '_')
const instruments = Object.values(sc.INSTRUMENTS) as readonly sc.InstrumentSpec[]

/** Every sample of a family on one path, keyed by its contract labels. */
async function samplesOf(
  api: PrometheusApi,
  job: string,
  { kind, prometheus: family, attributes }: sc.InstrumentSpec,
): Promise<Record<string, number>> {
  const names = kind === 'histogram' ? [`${family}_count`, `${family}_sum`, `${family}_bucket`] : [family]
  const samples: Record<string, number> = {}
  for (const name of names) {
    const by = [...attributes.map(label), 'le']
    for (const { metric, value } of await api.query(`sum by (${by.join()}) (${name}{job="${job}"})`)) {
      const labels = by.flatMap((key) =>
        metric[key] === undefined
          ? []
          : [`${key}=${key === 'le' ? Number(metric[key]?.replace('+Inf', 'Infinity')) : metric[key]}`],
      )
      samples[`${name}{${labels.join()}}`] = Number(value?.[1])
    }
  }
  return samples
}

const namesOn = async (api: PrometheusApi, job: string) =>
  ((await api.get('label/__name__/values', { 'match[]': `{job="${job}",__name__=~"dsh_.*"}` })) as string[]).sort()

test.skipIf(!hasCollector)(
  'the shipped files are valid, and the collector starts on them without a warning',
  async () => {
    for (const files of [[CONFIG], [CONFIG, TAIL_SAMPLING]]) {
      const { status, stderr } = spawnSync(COLLECTOR, ['validate', ...files.flatMap((file) => ['--config', file])], {
        encoding: 'utf8',
      })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      const collector = await startCollector({ files: files.slice(1) })
      expect(collector.log()).not.toMatch(/deprecat|\twarn\t|\terror\t/i)
      expect(collector.log()).toContain('Everything is ready')
      const own = await (await fetch(`http://127.0.0.1:${collector.telemetryPort}/metrics`)).text()
      expect(own).toContain('otelcol_process_uptime')
      await collector.kill()
    }
  },
)

describe.skipIf(!hasCollector || !hasPrometheus)('one run of 1,000 barriers with every outcome', () => {
  test(
    'is in Prometheus under the contract’s names, with equal numbers, from each of three paths',
    { timeout: 180_000 },
    async () => {
      const backend = await startBackend()
      const collector = await startCollector({ overrides: FAST, traces: backend.endpoint })
      const metricsPort = await freePort()
      const scraping = await startPrometheus('prometheus', [
        { job: 'collector', port: collector.port, honorLabels: true },
        { job: 'endpoint', port: metricsPort },
      ])
      const intake = await startPrometheus(PROMETHEUS, [], ['--web.enable-otlp-receiver'])
      const tee = await startTee(collector.otlp, [
        `${collector.otlp}/v1/metrics`,
        `${intake.url}/api/v1/otlp/v1/metrics`,
      ])
      const { app, run } = await createMixedApp([
        [nodeSdk, { endpoint: tee.endpoint, serviceName: SERVICE, metricsIntervalMs: 500 }],
        [prometheus, { port: metricsPort }],
      ])
      const startedAt = Date.now() / 1_000
      await run(1_000)

      // What the policy itself says of the run.
      const barriers = app.barriers()
      expect(barriers.length).toBeGreaterThanOrEqual(1_000)
      expect([...new Set(barriers.map(({ outcome }) => outcome))].sort()).toEqual([...sc.OUTCOMES].sort())
      expect([...new Set(barriers.map(({ flushOutcome }) => flushOutcome))].sort()).toEqual(
        [...sc.FLUSH_OUTCOMES].sort(),
      )
      const truth: Record<string, number> = {}
      for (const { boundary, outcome, strategy } of barriers) {
        const key = `dsh_checkpoint_barrier_duration_seconds_count{dsh_checkpoint_boundary=${boundary},dsh_checkpoint_outcome=${outcome},dsh_checkpoint_strategy=${strategy}}`
        truth[key] = (truth[key] ?? 0) + 1
      }

      const paths = [
        ['collector', scraping, SERVICE],
        ['intake', intake, SERVICE],
        ['endpoint', scraping, 'endpoint'],
      ] as const
      const barrierDuration = sc.INSTRUMENTS[sc.METRIC_BARRIER_DURATION]
      for (const [path, api, job] of paths) {
        await vi.waitFor(async () => {
          expect({ path, samples: await samplesOf(api, job, barrierDuration) }).toMatchObject({ path, samples: truth })
        }, WAIT)
      }

      // Names: the same set on each path, each one of the contract and no other.
      const expected = instruments
        .flatMap(({ kind, prometheus: family }) =>
          kind === 'histogram' ? ['_bucket', '_count', '_sum'].map((end) => family + end) : [family],
        )
        .sort()
      const own = (names: readonly string[]) => names.filter((name) => name.startsWith('dsh_checkpoint_'))
      for (const [path, api, job] of paths)
        expect({ path, names: own(await namesOn(api, job)) }).toEqual({ path, names: expected })

      // Numbers: equal to the last sample; ages pass while we look.
      const ages: string[] = [sc.METRIC_OLDEST_AGE, sc.METRIC_UNFLUSHED_AGE]
      for (const [name, instrument] of Object.entries(sc.INSTRUMENTS)) {
        if (ages.includes(name)) continue
        const [collected, received, scraped] = await Promise.all(
          paths.map(([, api, job]) => samplesOf(api, job, instrument)),
        )
        const counted = (samples: Record<string, number> = {}) =>
          Object.fromEntries(
            Object.entries(samples).flatMap(([key, value]) => (key.includes('_sum{') ? [] : [[key, value]])),
          )
        expect({ name, samples: received }).toEqual({ name, samples: collected })
        // prom-client has histograms at zero, OpenTelemetry begins them with their first value.
        const zeros = Object.entries(counted(scraped)).filter(
          ([key, value]) => value === 0 && counted(collected)[key] === undefined,
        )
        for (const [key] of zeros) delete scraped?.[key]
        expect({ name, samples: counted(scraped) }).toEqual({ name, samples: counted(collected) })
        for (const [key, value] of Object.entries(collected ?? {})) expect(scraped?.[key] ?? 0).toBeCloseTo(value, 6)
      }

      // Quantiles read from the same buckets, so not even one bucket apart.
      const quantiles = await Promise.all(
        paths.map(async ([, api, job]) => {
          const query = `histogram_quantile(0.99, sum by (le, dsh_checkpoint_boundary) (${barrierDuration.prometheus}_bucket{job="${job}"}))`
          return Object.fromEntries(
            (await api.query(query)).map(({ metric, value }) => [
              metric['dsh_checkpoint_boundary'],
              Number(value?.[1]),
            ]),
          )
        }),
      )
      expect(Object.keys(quantiles[0] ?? {}).sort()).toEqual([...sc.BOUNDARIES].sort())
      for (const other of quantiles.slice(1))
        for (const boundary of sc.BOUNDARIES) expect(other[boundary]).toBeCloseTo(quantiles[0]?.[boundary] as number, 9)

      // Span metrics: every barrier span counted, exemplars that name a trace of this run.
      await vi.waitFor(async () => {
        const calls = await scraping.query('sum(traces_span_metrics_calls_total{span_name=~"checkpoint .+"})')
        expect(Number(calls[0]?.value?.[1])).toBe(barriers.length)
      }, WAIT)
      const now = Date.now() / 1_000
      const exemplars = await scraping.exemplars(
        'traces_span_metrics_duration_seconds_bucket{span_name=~"checkpoint .+"}',
        now - 600,
        now + 1,
      )
      const traces = new Set(barriers.map(({ traceId }) => traceId))
      expect(exemplars.length).toBeGreaterThan(0)
      for (const { labels } of exemplars) expect(traces).toContain(labels['trace_id'])
      const buckets = await scraping.query('count by (le) (traces_span_metrics_duration_seconds_bucket)')
      expect(
        buckets.map(({ metric }) => Number(metric['le']?.replace('+Inf', 'Infinity'))).sort((a, b) => a - b),
      ).toEqual([...sc.DURATION_BUCKETS_SECONDS, Infinity])

      // Every panel of the dashboards has data on this path, too.
      await vi.waitFor(async () => {
        const to = Date.now() / 1_000
        expect(await withoutData(scraping, startedAt, to, { job: SERVICE })).toEqual([])
      }, WAIT)

      // The traces went out, and every scrape was accepted.
      await vi.waitFor(
        () => expect(backend.bodies.join('').split('"name":"checkpoint ').length - 1).toBe(barriers.length),
        WAIT,
      )
      const { activeTargets } = (await scraping.get('targets')) as {
        activeTargets: { health: string; lastError: string }[]
      }
      expect(activeTargets.map(({ health, lastError }) => `${health} ${lastError}`)).toEqual(['up ', 'up '])
      expect(tee.failures).toBe(0)
      expect(collector.log()).not.toMatch(/\twarn\t|\terror\t/)
    },
  )

  test('nothing that could hold a prompt leaves the collector', { timeout: 60_000 }, async () => {
    const backend = await startBackend()
    const collector = await startCollector({ overrides: FAST, traces: backend.endpoint })
    const { app } = await createMixedApp([
      [nodeSdk, { endpoint: collector.otlp, serviceName: SERVICE, metricsIntervalMs: 500 }],
    ])
    const host = trace.getTracer('host')
    const span = host.startSpan('chat model', {
      attributes: { 'gen_ai.prompt': 'SECRET', 'gen_ai.input.messages': 'SECRET', 'gen_ai.request.model': 'model' },
    })
    span.addEvent('exception', {
      'exception.type': 'TypeError',
      'exception.message': 'SECRET',
      'exception.stacktrace': 'SECRET',
    })
    span.end()
    const { agent } = await app.createAgent()
    await app.say(agent, 'SECRET')
    await app.plugins.at(-1)?.dispose()
    await vi.waitFor(() => expect(backend.bodies.join('')).toContain('"name":"chat model"'), WAIT)
    expect(backend.bodies.join('')).toContain('TypeError')
    expect(backend.bodies.join('')).toContain('checkpoint request')
    expect(backend.bodies.join('')).not.toContain('SECRET')
    expect(await (await fetch(`http://127.0.0.1:${collector.port}/metrics`)).text()).not.toContain('SECRET')
  })
})
