/** Both exporters in a headless profile of the real CLI: what a scrape shows, what arrives at a collector. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import * as sc from '../src/semconv.ts'
import { DshHome } from './support/dsh-cli.ts'
import { findCli } from './support/dsh-cli-hosts.ts'
import { bash, hasResult, startMockModel, type MockModel } from './support/mock-model.ts'

// Each process has a limit of its own, with a message that says more than the runner's.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 600_000 })

const cli = await findCli()

describe.skipIf(cli === undefined)('telemetry of a real dsh', () => {
  let home: DshHome
  let model: MockModel
  let collector: Collector
  /** Scrape while the turn runs: the headless profile exits with it. */
  let scraped: string

  beforeAll(async () => {
    collector = await startCollector()
    model = await startMockModel(async (request) => {
      if (!hasResult(request, 'call-1')) return [bash('call-1', 'true')]
      const url = await home.metricsUrl()
      if (url !== undefined) scraped = await (await fetch(url)).text()
      return 'all done'
    })
    home = await DshHome.withPolicy(cli ?? '')
  })
  beforeEach(async () => {
    scraped = ''
    await home.clear()
  })
  afterAll(async () => {
    await model?.close()
    await collector?.close()
    await home?.remove()
  })

  test('the barriers of a running turn are in /metrics, and its spans and metrics reach a collector', async () => {
    const sdk = { endpoint: collector.url, protocol: 'http/json', signals: ['traces', 'metrics'] }
    await home.patch({
      insert: [
        { id: 'checkpoint-prometheus', name: 'dsh-checkpoint-otel/prometheus', config: { port: 0 } },
        { id: 'checkpoint-node-sdk', name: 'dsh-checkpoint-otel/node-sdk', config: sdk },
      ],
    })
    const { code, stdout, stderr } = await home.start('Do nothing.', model.url).finished
    expect([code, stdout]).toEqual([0, 'all done\n'])
    // One sentence about the telemetry that was lost, and nothing else.
    expect(stderr.split('\n').filter((line) => line !== '' && !/CheckpointWarning|trace-warnings/.test(line))).toEqual(
      [],
    )

    // So far: step, request, title request, tool, step, request.
    const counts = [...scraped.matchAll(/^dsh_checkpoint_barrier_duration_seconds_count\{(.*)\} ([1-9]\d*)$/gm)].map(
      ([, labels = '', count]) =>
        `${/boundary="(\w+)"/.exec(labels)?.[1]} ${/outcome="(\w+)"/.exec(labels)?.[1]}: ${count}`,
    )
    expect(counts.toSorted()).toEqual(['request dispatched: 3', 'step dispatched: 2', 'tool dispatched: 1'])

    const spans = collector.spans()
    const turn = spans.find((span) => span.name === sc.SPAN_TURN)
    expect(turn).toBeDefined()
    const names = spans.filter((span) => span.parentSpanId === turn?.spanId).map((span) => span.name)
    expect(names.toSorted()).toEqual(
      [
        sc.SPAN_BARRIER.step,
        sc.SPAN_BARRIER.request,
        sc.SPAN_BARRIER.request,
        sc.SPAN_BARRIER.tool,
        sc.SPAN_BARRIER.step,
        sc.SPAN_BARRIER.request,
        sc.SPAN_BARRIER.turn,
      ].toSorted(),
    )
    expect(collector.metrics()).toEqual(
      expect.arrayContaining([sc.METRIC_BARRIER_DURATION, sc.METRIC_FLUSH_DURATION, sc.METRIC_ACTIVE]),
    )
  })

  test('a collector that is not there changes nothing for the agent, and delays its exit by seconds at most', async () => {
    const gone = await startCollector()
    await gone.close()
    await home.patch({
      insert: [
        {
          id: 'checkpoint-node-sdk',
          name: 'dsh-checkpoint-otel/node-sdk',
          config: { endpoint: gone.url, signals: ['traces', 'metrics'] },
        },
      ],
    })
    const startedAt = performance.now()
    const { code, stdout, stderr } = await home.start('Do nothing.', model.url).finished
    expect([code, stdout]).toEqual([0, 'all done\n'])
    // One sentence about the telemetry that was lost, and nothing else.
    expect(stderr.split('\n').filter((line) => line !== '' && !/CheckpointWarning|trace-warnings/.test(line))).toEqual(
      [],
    )
    expect(performance.now() - startedAt).toBeLessThan(15_000)
  })
})

interface Span {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
}

interface Collector {
  readonly url: string
  spans(): Span[]
  /** Names of instruments. */
  metrics(): string[]
  close(): Promise<void>
}

interface Export {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[]
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[]
  }[]
}

/** An OTLP receiver for JSON; keeps what a test sends, which is little. */
async function startCollector(): Promise<Collector> {
  const exports: Export[] = []
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      exports.push(JSON.parse(Buffer.concat(parts).toString('utf8')) as Export)
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () =>
      exports
        .flatMap((each) => each.resourceSpans ?? [])
        .flatMap((each) => each.scopeSpans)
        .flatMap((each) => each.spans),
    metrics: () => [
      ...new Set(
        exports
          .flatMap((each) => each.resourceMetrics ?? [])
          .flatMap((each) => each.scopeMetrics)
          .flatMap((each) => each.metrics)
          .map((metric) => metric.name),
      ),
    ],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
