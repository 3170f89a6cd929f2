/** The inspector's server as a client sees it, and the inspector on a made-up policy. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Context, type Fiber } from '@deepseek-ai/cordis'
import { onTestFinished } from 'vitest'
import type { OpenBarrier } from '../../src/barrier.ts'
import type { CheckpointObserver, Checkpoints, CheckpointState, SettledBarrier } from '../../src/index.ts'
import * as inspector from '../../src/inspector.ts'
import type { InspectorState, InspectorUpdate } from '../../src/inspector.ts'
import { DURATION_BUCKETS_SECONDS } from '../../src/semconv.ts'
import { ask, freePort } from './scrape.ts'

/** Everything the inspector knows, over HTTP. */
export async function stateOf(port: number): Promise<InspectorState> {
  const { status, body } = await ask(port, { path: '/api/state' })
  if (status !== 200) throw new Error(`status ${status}: ${body}`)
  return JSON.parse(body) as InspectorState
}

/** One message of the stream. */
interface Message {
  readonly event: string
  readonly data: InspectorState & InspectorUpdate
  /** Length of the text. */
  readonly length: number
}

/** An open stream. */
export interface Stream {
  readonly response: IncomingMessage
  /** The next message. */
  next(): Promise<Message>
  /** Messages that came and were not asked for. */
  readonly waiting: Message[]
  readonly ended: Promise<void>
  close(): void
}

/** Open a stream; it ends with the test. */
export async function openStream(port: number): Promise<Stream> {
  const outgoing = request({ host: '127.0.0.1', port, path: '/api/events', agent: false })
  outgoing.on('error', () => {})
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const waiting: Message[] = []
  let wake = Promise.withResolvers<void>()
  let text = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
      waiting.push({ event, data: JSON.parse(data) as Message['data'], length: end })
      text = text.slice(end + 2)
    }
    wake.resolve()
  })
  const ended = new Promise<void>((resolve) => response.once('close', () => resolve()).on('error', () => {}))
  const close = () => void outgoing.destroy()
  onTestFinished(close)
  const next = async () => {
    while (waiting.length === 0) {
      await wake.promise
      wake = Promise.withResolvers()
    }
    return waiting.shift() as Message
  }
  return { response, next, waiting, ended, close }
}

/** The inspector on a made-up policy. */
export interface Fake {
  readonly ctx: Context
  readonly port: number
  readonly plugin: Fiber
  readonly logs: string[]
  open: OpenBarrier[]
  state: () => CheckpointState
  /** Times that `state` was asked for. */
  readonly looks: () => number
  announce(...records: readonly (Partial<SettledBarrier> | object)[]): void
}

/** Start it. */
export async function createFake(config: object = {}): Promise<Fake> {
  const ctx = new Context()
  onTestFinished(() => ctx.fiber.dispose())
  const logs: string[] = []
  ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => void logs.push(args.map(String).join(' ')) })
  const observers = new Set<CheckpointObserver>()
  let looks = 0
  const service: Checkpoints = {
    observe(observer) {
      observers.add(observer)
      return () => observers.delete(observer)
    },
    open: () => fake.open,
    state: () => {
      looks += 1
      return fake.state()
    },
    durationBucketsSeconds: DURATION_BUCKETS_SECONDS,
    allowUnguarded: false,
  }
  const policy = { name: 'fake-policy', apply: (scope: Context) => void scope.provide('checkpoints', service) }
  await ctx.plugin(policy as never, undefined as never)
  const port = await freePort()
  const plugin = ctx.plugin(inspector as never, { port, ...config } as never) as unknown as Fiber
  let id = 0
  const fake: Fake = {
    ctx,
    port,
    plugin,
    logs,
    open: [],
    state: () => IDLE,
    looks: () => looks,
    announce(...records) {
      for (const record of records) {
        const announced = Object.freeze('kind' in record ? record : { ...SETTLED, id: (id += 1), ...record })
        for (const observer of observers) observer(announced as never)
      }
    },
  }
  await plugin.await()
  return fake
}

/** Gauges of a policy with nothing to do. */
export const IDLE: CheckpointState = {
  active: { step: 0, request: 0, tool: 0, turn: 0 },
  oldestAgeMs: 0,
  unflushedOldestAgeMs: 0,
  consecutiveFailures: 0,
  strategy: 'default',
}

const SETTLED: SettledBarrier = {
  kind: 'barrier',
  boundary: 'tool',
  sessionId: 's',
  delegationDepth: 0,
  turn: 1,
  step: 1,
  toolName: 'bash',
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
