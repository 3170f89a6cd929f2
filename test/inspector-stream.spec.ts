import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import * as inspector from '../src/inspector.ts'
import { BEAT_MS, MAX_STREAMS, TICK_MS } from '../src/inspector/streams.ts'
import { createFake, IDLE, openStream } from './support/inspector.ts'
import { ask } from './support/scrape.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Messages of more than 0.5 MB each; the buffers of both sockets take about a dozen. */
const ROUNDS = 60
const OPEN = {
  id: 7,
  boundary: 'tool',
  guarded: true,
  sessionId: 's',
  delegationDepth: 0,
  pendingEvents: 1,
  strategy: 'default',
  ageMs: 1,
  waiting: true,
} as const

test('a stream begins with everything and goes on with what is new, each barrier once', async () => {
  const fake = await createFake()
  fake.announce({ callId: 'a' }, { callId: 'b' })
  const first = await openStream(fake.port)
  const everything = await first.next()
  expect([everything.event, everything.data.last.map(({ callId }) => callId)]).toEqual(['state', ['b', 'a']])
  // What settles before the next look, while one more page opens.
  fake.announce({ callId: 'c' })
  const second = await openStream(fake.port)
  fake.announce({ callId: 'd' })
  expect((await second.next()).data.last.map(({ callId }) => callId)).toEqual(['c', 'b', 'a'])
  expect((await second.next()).data.last.map(({ callId }) => callId)).toEqual(['d'])
  expect((await first.next()).data.last.map(({ callId }) => callId)).toEqual(['c'])
  expect((await first.next()).data).toMatchObject({ last: [{ callId: 'd' }], settled: 4 })
})

test('an opened barrier, a failure, another strategy and a log that falls behind are each told; nothing is when nothing changes', async () => {
  const fake = await createFake()
  const stream = await openStream(fake.port)
  await stream.next()
  fake.open = [OPEN]
  expect((await stream.next()).data.open).toEqual([OPEN])
  fake.open = []
  expect((await stream.next()).data.open).toEqual([])
  fake.state = () => ({ ...IDLE, consecutiveFailures: 2 })
  expect((await stream.next()).data.gauges.consecutiveFailures).toBe(2)
  fake.state = () => ({ ...IDLE, strategy: 'mine' })
  expect((await stream.next()).data.gauges.strategy).toBe('mine')
  const since = performance.now()
  fake.state = () => ({ ...IDLE, strategy: 'mine', unflushedOldestAgeMs: performance.now() - since + 1 })
  expect((await stream.next()).data.gauges.unflushedOldestAgeMs).toBeGreaterThan(0)
  // The same age goes on: no message until the sign of life.
  const looks = fake.looks()
  await vi.waitFor(() => expect(fake.looks()).toBeGreaterThan(looks + 4), { timeout: 5_000 })
  expect(stream.waiting).toEqual([])
})

test('the lists of the slowest and of recovered calls are sent when they change, and not otherwise', async () => {
  const fake = await createFake()
  const stream = await openStream(fake.port)
  await stream.next()
  fake.announce({ durationMs: 5 })
  expect((await stream.next()).data).toMatchObject({ slowest: [{ durationMs: 5 }] })
  fake.announce({ durationMs: 0 })
  expect(Object.keys((await stream.next()).data)).not.toContain('slowest')
  fake.announce({ kind: 'recovered', recovery: 'unknown', sessionId: 's', callId: 'c', turn: 1, step: 1 })
  const { data } = await stream.next()
  expect(data).toMatchObject({ last: [], recoveredCalls: [{ callId: 'c' }], recovered: { unknown: 1 } })
})

test('however many barriers settle, a page gets at most one message per look, and at most as many barriers as are kept', async () => {
  const fake = await createFake()
  const stream = await openStream(fake.port)
  await stream.next()
  const from = performance.now()
  for (let index = 0; index < 10_000; index += 1) fake.announce({ callId: `c${index}` })
  const { data } = await stream.next()
  expect([data.settled, data.last.length]).toEqual([10_000, 500])
  fake.announce({ callId: 'later' })
  expect((await stream.next()).data.last).toHaveLength(1)
  expect(stream.waiting).toEqual([])
  expect(performance.now() - from).toBeGreaterThan(TICK_MS)
})

test('without an open page nothing looks at the policy, and the last page that leaves stops the looking', async () => {
  const fake = await createFake()
  const intervals = vi.spyOn(globalThis, 'setInterval')
  const cleared = vi.spyOn(globalThis, 'clearInterval')
  fake.announce({}, {})
  await ask(fake.port, { path: '/' })
  expect([fake.looks(), intervals.mock.calls.length]).toEqual([0, 0])
  const streams = [await openStream(fake.port), await openStream(fake.port)]
  for (const stream of streams) await stream.next()
  expect(intervals.mock.calls.map(([, ms]) => ms)).toEqual([TICK_MS])
  const timer = intervals.mock.results[0]?.value as unknown
  streams[0]?.close()
  await streams[0]?.ended
  expect(cleared.mock.calls.flat()).not.toContain(timer)
  streams[1]?.close()
  await vi.waitFor(() => expect(cleared.mock.calls.flat()).toContain(timer))
})

test('a quiet stream has a sign of life before the server or a proxy takes it for dead', async () => {
  const fake = await createFake()
  const stream = await openStream(fake.port)
  await stream.next()
  const from = performance.now()
  expect(await stream.next()).toMatchObject({ event: 'beat' })
  expect(performance.now() - from).toBeLessThan(BEAT_MS + 1_000)
  expect(await stream.next()).toMatchObject({ event: 'beat' })
  fake.announce({ callId: 'after' })
  expect((await stream.next()).data.last).toMatchObject([{ callId: 'after' }])
})

test('one page more than are served is turned away with 503, and has its turn when another leaves', async () => {
  const fake = await createFake()
  const streams = []
  for (let index = 0; index < MAX_STREAMS; index += 1) streams.push(await openStream(fake.port))
  expect(await ask(fake.port, { path: '/api/events' })).toMatchObject({ status: 503, headers: { 'retry-after': '10' } })
  // Scripts and the page itself are not pages that are open.
  expect((await ask(fake.port, { path: '/api/state' })).status).toBe(200)
  streams[0]?.close()
  await vi.waitFor(async () => {
    const stream = await openStream(fake.port)
    expect(stream.response.statusCode).toBe(200)
    await stream.next()
  })
})

test('a page that does not read is cut off instead of being waited for; the others go on', async () => {
  const fake = await createFake()
  const lazy = connect(fake.port, '127.0.0.1')
  await once(lazy, 'connect')
  lazy.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(lazy, 'data')
  lazy.pause()
  const closed = once(
    lazy.on('error', () => {}),
    'close',
  )
  const stream = await openStream(fake.port)
  await stream.next()
  expect(await countOf(fake.port)).toBe(2)
  let round = 0
  // More than the sockets' own buffers take.
  for (; round < ROUNDS && (await countOf(fake.port)) === 2; round += 1) {
    for (let index = 0; index < 500; index += 1)
      fake.announce({
        durationMs: round,
        toolName: 't'.repeat(200),
        sessionId: 's'.repeat(200),
        callId: 'c'.repeat(200),
        model: 'm'.repeat(200),
      })
    expect((await stream.next()).data.last).toHaveLength(500)
  }
  expect(round).toBeLessThan(ROUNDS)
  lazy.resume()
  await closed
}, 60_000)

/** Streams that are open: those that are served, less those that still may connect. */
async function countOf(port: number): Promise<number> {
  const extra = []
  for (;;) {
    const stream = await openStream(port)
    if (stream.response.statusCode !== 200) break
    extra.push(stream)
  }
  for (const stream of extra) stream.close()
  await Promise.all(extra.map(({ ended }) => ended))
  return MAX_STREAMS - extra.length
}

test('unloading ends the streams at once and leaves no socket; the next load serves again', async () => {
  const fake = await createFake()
  const streams = [await openStream(fake.port), await openStream(fake.port)]
  for (const stream of streams) await stream.next()
  const from = performance.now()
  await fake.plugin.dispose()
  expect(performance.now() - from).toBeLessThan(500)
  for (const stream of streams) await stream.ended
  await expect(ask(fake.port, { path: '/' })).rejects.toThrow('ECONNREFUSED')
  fake.ctx.plugin(inspector as never, { port: fake.port } as never)
  await vi.waitFor(async () => expect((await ask(fake.port, { path: '/api/state' })).status).toBe(200))
})

test('a policy that throws while pages are open is said once in the log, harms nobody, and the pages go on', async () => {
  const fake = await createFake()
  const stream = await openStream(fake.port)
  await stream.next()
  const { state } = fake
  fake.state = () => {
    throw new Error('no ledger')
  }
  const looks = fake.looks()
  await vi.waitFor(() => expect(fake.looks()).toBeGreaterThan(looks + 2), { timeout: 5_000 })
  fake.state = state
  fake.announce({ callId: 'after' })
  expect((await stream.next()).data.last).toMatchObject([{ callId: 'after' }])
  expect(fake.logs.filter((line) => line.includes('an update of the page failed: Error: no ledger'))).toHaveLength(1)
})
