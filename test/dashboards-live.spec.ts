/** Every query of the dashboards and rules against a real Prometheus that scraped a real run with every outcome. */
import { fileURLToPath } from 'node:url'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { DashboardJson } from '../dashboards/lint.ts'
import { overview } from '../dashboards/overview.ts'
import { expand } from '../dashboards/promql.ts'
import { counted, LABEL, NO_AGENT, orQuiet, PANEL, STATES, state } from '../dashboards/queries.ts'
import * as sc from '../src/semconv.ts'
import { MACROS, withoutData } from './support/dashboard-queries.ts'
import { createFleet } from './support/every-outcome.ts'
import { PROMETHEUS_INSTALLED, startPrometheus, type PrometheusServer } from './support/prometheus-server.ts'
import { requirement } from './support/require.ts'

const RULE_FILE = fileURLToPath(new URL('../dashboards/checkpoint.rules.yaml', import.meta.url))
const WAIT = { timeout: 30_000, interval: 250 }

describe.skipIf(!requirement('prometheus (apt-get install prometheus)', PROMETHEUS_INSTALLED))(
  'against a real Prometheus',
  () => {
    test(
      '[D21] the quiet state, the first failures and every outcome show on every panel and rule',
      { timeout: 120_000 },
      async () => {
        traceEverything()
        const { fleet, run } = await createFleet()
        const server = await startPrometheus({
          targets: fleet.map(({ port, instance }) => ({ job: 'every-outcome', port, instance })),
          ruleFiles: [RULE_FILE],
        })
        onTestFinished(() => server.stop())
        const from = Date.now() / 1_000
        await vi.waitFor(
          async () => expect(await server.query('min_over_time(up[2s]) == 1')).toHaveLength(fleet.length),
          WAIT,
        )

        // Nothing has happened: quiet, not broken, and no alert.
        const states = await server.query(expand(state(PANEL), MACROS))
        expect(new Set(states.map(({ value }) => stateOf(value?.[1])))).toEqual(new Set(['QUIET']))
        expect(states).toHaveLength(fleet.length)
        for (const tile of [
          'Failed in range',
          'Unguarded in range',
          'Recovered in range',
          'Barriers per second',
          'Time spent waiting',
        ]) {
          const [answer] = await server.query(expand(exprOf(overview() as DashboardJson, tile), MACROS))
          expect([tile, answer?.value?.[1]]).toEqual([tile, '0'])
        }
        // The first evaluation may precede the first scrape, when nobody had reported yet.
        await vi.waitFor(
          async () => expect(((await server.get('alerts')) as { alerts: unknown[] }).alerts).toEqual([]),
          WAIT,
        )

        // Over OTLP a histogram is missing until its first barrier: that reads as zero while the policy reports, else as nothing.
        const missing = 'sum(rate(dsh_checkpoint_barrier_duration_seconds_count{job="none"}[30s]))'
        for (const by of [undefined, LABEL.outcome]) {
          expect(
            (await server.query(expand(orQuiet(missing, PANEL, by), MACROS))).map(({ value }) => value?.[1]),
          ).toEqual(['0'])
          expect(await server.query(expand(orQuiet(missing, PANEL, by), MACROS, { job: 'none' }))).toEqual([])
        }
        expect(await server.query(expand(orQuiet(missing, PANEL, LABEL.boundary), MACROS))).toHaveLength(
          sc.BOUNDARIES.length,
        )
        const [nobody] = await server.query(
          expand(exprOf(overview() as DashboardJson, 'Now, all processes'), MACROS, { job: 'none' }),
        )
        expect(nobody?.value?.[1]).toBe(String(NO_AGENT.value))

        await run()
        await vi.waitFor(async () => expect(await recoveredCalls(server)).toBe(2), WAIT)
        // One more scrape of everything: increase() wants two samples.
        const settled = Date.now() / 1_000
        await vi.waitFor(async () => {
          const scraped = await server.query('timestamp(dsh_checkpoint_policy_active)')
          expect(Math.min(...scraped.map(({ value }) => Number(value?.[1])))).toBeGreaterThan(settled + 1)
        }, WAIT)
        const to = Date.now() / 1_000

        expect(await withoutData(server, from, to)).toEqual([])

        // The first rejection of a series that began at 0 is seen as about one.
        const rejections = await server.query(
          expand(counted(sc.METRIC_REJECTIONS, PANEL, ['instance', LABEL.boundary, LABEL.errorType]), MACROS),
        )
        const seen = rejections.filter(({ value }) => Number(value?.[1]) > 0)
        expect(
          seen
            .map(({ metric }) => `${metric['instance']} ${metric[LABEL.boundary]} ${metric[LABEL.errorType]}`)
            .toSorted(),
        ).toEqual(['limited tool timeout', 'steady tool ENOSPC'])
        for (const { value } of seen) expect(Number(value?.[1])).toBeCloseTo(1, 0)

        const now = await server.query(expand(state(PANEL), MACROS))
        const byInstance = Object.fromEntries(now.map(({ metric, value }) => [metric['instance'], stateOf(value?.[1])]))
        expect(byInstance).toMatchObject({
          steady: 'FAILED LATELY',
          limited: 'FAILED LATELY',
          lenient: 'UNGUARDED',
          unconfirmed: 'UNGUARDED',
        })

        await vi.waitFor(async () => {
          const { alerts } = (await server.get('alerts')) as {
            alerts: { state: string; labels: Record<string, string>; annotations: Record<string, string> }[]
          }
          const firing = alerts.filter((alert) => alert.state === 'firing')
          expect(new Set(firing.map(({ labels }) => labels['alertname']))).toEqual(
            new Set(['DshCheckpointRejected', 'DshCheckpointUnguarded', 'DshCheckpointStrategyFault']),
          )
          expect(firing.map(({ annotations }) => annotations['summary'])).toContain(
            'every-outcome steady: tool barrier failed, ENOSPC',
          )
          expect(JSON.stringify(firing)).not.toMatch(/<error|%!/)
        }, WAIT)

        // A process that dies leaves the number of processes, and its state is a gap.
        await fleet[0]?.app.dispose()
        await vi.waitFor(async () => {
          const [processes] = await server.query(expand(exprOf(overview() as DashboardJson, 'Agent processes'), MACROS))
          expect(processes?.value?.[1]).toBe(String(fleet.length - 1))
        }, WAIT)
      },
    )
  },
)

function exprOf(dashboard: DashboardJson, title: string): string {
  const expr = dashboard.panels?.find((panel) => panel.title === title)?.targets?.[0]?.expr
  if (expr === undefined) throw new Error(`no panel ${title}`)
  return expr
}

async function recoveredCalls(server: PrometheusServer): Promise<number> {
  const [answer] = await server.query(`sum(${sc.INSTRUMENTS[sc.METRIC_RECOVERED].prometheus})`)
  return Number(answer?.value?.[1])
}

function stateOf(value: string | undefined): string | undefined {
  return STATES.find((candidate) => String(candidate.value) === value)?.text
}

/** Exemplars name traces, so there must be some. */
function traceEverything(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: new InMemorySpanExporter() })] }),
  )
  onTestFinished(() => {
    trace.disable()
    context.disable()
  })
}
