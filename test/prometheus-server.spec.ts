/** Prometheus itself reads the endpoint: promtool the classic text, the server OpenMetrics with exemplars. */
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { createTool } from '../src/testing/harness.ts'
import { createApp, storageError, tempFolder } from './support/app.ts'
import { ask, freePort } from './support/scrape.ts'
import { requirement } from './support/require.ts'

const exists = (program: string) => spawnSync(program, ['--version']).status === 0
const TOKEN = 'scraper-token'

/** An app on which one call was written, one was refused, and every other barrier was passed. */
async function createTraced() {
  const exporter = new InMemorySpanExporter()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
  onTestFinished(() => {
    trace.disable()
    context.disable()
  })
  const port = await freePort()
  const app = await createApp({
    tools: [createTool('write', () => 'ok')],
    plugins: [[policy], [prometheus, { port, token: TOKEN }]],
  })
  const { agent } = await app.createAgent()
  const turn = async () => {
    const turns = app.barriers().filter(({ boundary }) => boundary === 'turn').length
    app.model.push([{ name: 'write' }])
    await app.say(agent, 'hi')
    await vi.waitFor(() => expect(app.barriers().filter(({ boundary }) => boundary === 'turn')).toHaveLength(turns + 1))
  }
  return { app, port, turn, exporter }
}

describe.skipIf(!requirement('promtool (apt-get install prometheus)', exists('promtool')))('promtool', () => {
  test('[D22] check metrics has nothing to say about the classic text, before and after a scrape of OpenMetrics', async () => {
    const { port, turn } = await createTraced()
    const authorization = `Bearer ${TOKEN}`
    const check = (input: string) => {
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
    }
    check((await ask(port, { headers: { authorization } })).body)
    await turn()
    await ask(port, { headers: { authorization, accept: 'application/openmetrics-text' } })
    check((await ask(port, { headers: { authorization } })).body)
  })
})

describe.skipIf(!requirement('prometheus (apt-get install prometheus)', exists('prometheus')))(
  'a Prometheus server',
  () => {
    test(
      '[D21] scrapes it, counts what happened from zero on, and finds the traces by their exemplars',
      { timeout: 60_000 },
      async () => {
        const { app, port, turn, exporter } = await createTraced()
        const query = await startPrometheus(port)
        await vi.waitFor(
          async () => expect(await query('up')).toMatchObject([{ value: [expect.anything(), '1'] }]),
          WAIT,
        )

        app.flushes.on = () => {
          if (app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')) throw storageError('ENOSPC')
        }
        await turn()
        app.flushes.on = undefined
        await turn()

        const { prometheus: duration } = sc.INSTRUMENTS[sc.METRIC_BARRIER_DURATION]
        const { prometheus: rejections } = sc.INSTRUMENTS[sc.METRIC_REJECTIONS]
        const label = (attribute: string) => attribute.replaceAll('.', '_')
        const counted: Record<string, number> = {}
        for (const { boundary, outcome } of app.barriers())
          counted[`${boundary} ${outcome}`] = (counted[`${boundary} ${outcome}`] ?? 0) + 1
        await vi.waitFor(async () => {
          const rows = await query(`${duration}_count > 0`)
          const seen = rows.map(({ metric, value }) => [
            `${metric[label(sc.ATTR_BOUNDARY)]} ${metric[label(sc.ATTR_OUTCOME)]}`,
            Number(value[1]),
          ])
          expect(Object.fromEntries(seen)).toEqual(counted)
        }, WAIT)
        // The series was there at 0 before its first rejection: increase() sees the first one.
        await vi.waitFor(async () => {
          const [row] = await query(`sum(increase(${rejections}[1m]))`)
          expect(Number(row?.value[1])).toBeCloseTo(1, 0)
        }, WAIT)
        expect(await query('scrape_samples_scraped > 0')).toHaveLength(1)

        const traces = new Set(exporter.getFinishedSpans().map((span) => span.spanContext().traceId))
        const exemplars = await query.exemplars(`${duration}_bucket`)
        expect(exemplars.length).toBeGreaterThan(0)
        for (const { labels } of exemplars) expect(traces).toContain(labels[sc.EXEMPLAR_TRACE_ID])
      },
    )
  },
)

const WAIT = { timeout: 20_000, interval: 100 }

interface Row {
  readonly metric: Record<string, string>
  readonly value: readonly [number, string]
}

interface Exemplar {
  readonly labels: Record<string, string>
}

/** Start a server that scrapes the port five times a second; answers queries. */
async function startPrometheus(target: number) {
  const folder = tempFolder()
  const file = join(folder, 'prometheus.yml')
  const lines = [
    'global: { scrape_interval: 200ms, scrape_timeout: 200ms }',
    'scrape_configs:',
    '  - job_name: agent',
    `    authorization: { credentials: ${TOKEN} }`,
    `    static_configs: [{ targets: ["127.0.0.1:${target}"] }]`,
  ]
  writeFileSync(file, lines.join('\n'))
  const port = await freePort()
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--enable-feature=exemplar-storage',
  ]
  const child = spawn('prometheus', args, { stdio: 'ignore' })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
  })
  const get = async (path: string, parameters: Record<string, string>): Promise<unknown> => {
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters).toString()}`,
    )
    const { status, data } = (await response.json()) as { status: string; data: unknown }
    if (status !== 'success') throw new Error(`${path}: ${response.status}`)
    return data
  }
  const query = async (text: string) => ((await get('query', { query: text })) as { result: Row[] }).result
  const exemplars = async (text: string) => {
    const now = Date.now() / 1_000
    const found = (await get('query_exemplars', { query: text, start: String(now - 600), end: String(now + 60) })) as {
      exemplars: Exemplar[]
    }[]
    return found.flatMap((series) => series.exemplars)
  }
  return Object.assign(query, { exemplars })
}
