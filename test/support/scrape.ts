/** A scraper for the tests: raw requests, and an exposition as a map of samples. */
import { once } from 'node:events'
import { request, type Agent, type IncomingHttpHeaders } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { Context, type Fiber } from '@deepseek-ai/cordis'
import { onTestFinished } from 'vitest'
import type {
  CheckpointObserver,
  CheckpointRecord,
  Checkpoints,
  CheckpointState,
  SettledBarrier,
} from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import { DURATION_BUCKETS_SECONDS, INSTRUMENTS } from '../../src/semconv.ts'

export const OPENMETRICS = 'application/openmetrics-text;version=1.0.0'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Ask {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: Record<string, string>
  readonly agent?: Agent
}

/** A port of loopback that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** One request, with no header that is not named. */
export async function ask(
  port: number,
  { method = 'GET', path = '/metrics', host = '127.0.0.1', headers, agent }: Ask = {},
): Promise<Answer> {
  const outgoing = request({ host, port, method, path, headers, agent: agent ?? false })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += chunk
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

/** Scrape and parse; the server has until the end of the test's patience to begin to listen. */
export async function scrape(port: number, accept?: string): Promise<Samples> {
  const headers: Record<string, string> = accept === undefined ? {} : { accept }
  for (;;) {
    try {
      const { status, body } = await ask(port, { headers })
      if (status !== 200) throw new Error(`status ${status}`)
      return new Samples(body)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error
    }
  }
}

/** The samples of one exposition. */
export class Samples {
  readonly body: string
  /** Value by series; labels in alphabetical order, as `name{a="1",b="2"}`. */
  readonly series = new Map<string, number>()
  /** Exemplar labels by series. */
  readonly exemplars = new Map<string, Readonly<Record<string, string>>>()

  constructor(body: string) {
    this.body = body
    for (const line of body.split('\n')) {
      if (line === '' || line.startsWith('#')) continue
      const [, name = '', labels = '', value = '', exemplar] =
        /^([\w:]+)(?:\{(.*?)\})? (\S+)(?: # \{(.*)\} .*)?$/.exec(line) ?? []
      if (name === '') throw new Error(`not a sample: ${line}`)
      const key = seriesKey(name, labelsOf(labels))
      if (this.series.has(key)) throw new Error(`twice: ${key}`)
      this.series.set(key, Number(value))
      if (exemplar !== undefined) this.exemplars.set(key, labelsOf(exemplar))
    }
  }

  /** Value of a series of the contract; `suffix` is `_count`, `_sum` or `_bucket` of a histogram. */
  value(
    instrument: keyof typeof INSTRUMENTS,
    attributes: Readonly<Record<string, string>> = {},
    suffix = '',
  ): number | undefined {
    return this.series.get(contractKey(instrument, attributes, suffix))
  }

  /** The non-zero series of an instrument, histograms by their counts; labels without their prefix. */
  nonZero(instrument: keyof typeof INSTRUMENTS): Record<string, number> {
    const { kind, prometheus: family } = INSTRUMENTS[instrument]
    const name = kind === 'histogram' ? `${family}_count` : family
    const found = [...this.series].filter(([key, value]) => value !== 0 && (key === name || key.startsWith(`${name}{`)))
    return Object.fromEntries(
      found.map(([key, value]) => [key.slice(name.length).replaceAll(/[{}"]|[a-z_]+=/g, ''), value]),
    )
  }
}

/** The key under which {@link Samples} has a series of the contract. */
export function contractKey(
  instrument: keyof typeof INSTRUMENTS,
  attributes: Readonly<Record<string, string>>,
  suffix = '',
): string {
  const labels = Object.entries(attributes).map(([key, value]) => [key.replaceAll('.', '_'), value] as const)
  return seriesKey(INSTRUMENTS[instrument].prometheus + suffix, Object.fromEntries(labels))
}

function seriesKey(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return pairs.length === 0 ? name : `${name}{${pairs.map(([key, value]) => `${key}="${value}"`).join(',')}}`
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', value = '']) => [key, value]),
  )
}

/** The plugin on a policy that is made up: records at will, thousands a second. */
export interface Fake {
  readonly ctx: Context
  readonly port: number
  readonly plugin: Fiber
  /** What `state()` answers; a function may throw. */
  state: () => CheckpointState
  readonly observers: Set<CheckpointObserver>
  readonly logs: string[]
  announce(record: Partial<SettledBarrier> | CheckpointRecord): void
}

/** Start the plugin on a made-up policy. */
export async function createFake(
  config: object = {},
  buckets: readonly number[] = DURATION_BUCKETS_SECONDS,
): Promise<Fake> {
  const ctx = new Context()
  onTestFinished(() => ctx.fiber.dispose())
  const logs: string[] = []
  ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => void logs.push(args.map(String).join(' ')) })
  const observers = new Set<CheckpointObserver>()
  const service: Checkpoints = {
    observe(observer) {
      observers.add(observer)
      return () => observers.delete(observer)
    },
    open: () => [],
    state: () => fake.state(),
    durationBucketsSeconds: buckets,
    allowUnguarded: false,
  }
  await ctx.plugin(
    { name: 'fake-policy', apply: (scope: Context) => void scope.provide('checkpoints', service) } as never,
    undefined as never,
  )
  const port = await freePort()
  const plugin = ctx.plugin(prometheus as never, { port, ...config } as never) as unknown as Fiber
  const fake: Fake = {
    ctx,
    port,
    plugin,
    observers,
    logs,
    state: () => ({
      active: { step: 0, request: 0, tool: 0, turn: 0 },
      oldestAgeMs: 0,
      unflushedOldestAgeMs: 0,
      consecutiveFailures: 0,
      strategy: 'default',
    }),
    announce(record) {
      for (const observer of observers) observer(record.kind === 'recovered' ? record : { ...SETTLED, ...record })
    },
  }
  await plugin.await()
  return fake
}

const SETTLED: SettledBarrier = {
  kind: 'barrier',
  boundary: 'tool',
  sessionId: 's',
  delegationDepth: 0,
  id: 1,
  openedAt: 0,
  guarded: true,
  outcome: 'dispatched',
  flushOutcome: 'durable',
  strategy: 'default',
  decision: 'flush',
  unguarded: false,
  events: 1,
  pendingEvents: 1,
  durationMs: 1,
  flushMs: 1,
  sharedFlush: false,
}
