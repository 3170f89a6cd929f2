import type { Context } from '@deepseek-ai/cordis'
import { register } from 'prom-client'
import { expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, type App } from './support/app.ts'
import { contractKey, createFake, freePort, OPENMETRICS, scrape, type Samples } from './support/scrape.ts'

/** An app with policy and endpoint, whose agent makes one call and then says something. */
async function createScraped(config: object = {}, plugins: readonly (readonly [object, unknown?])[] = []) {
  const port = await freePort()
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'call-a' }]]),
    tools: [createTool('write', () => 'written')],
    plugins: [[policy, config], [prometheus, { port }], ...plugins],
  })
  const { agent } = await app.createAgent()
  return { app, agent, port, scrape: (accept?: string) => scrape(port, accept) }
}

/** Whether the flush that is running belongs to a barrier at this boundary. */
const isAt = (app: App, boundary: string) => app.ctx.checkpoints.open().some((barrier) => barrier.boundary === boundary)

/** The write of the turn's end is over, too. */
const turnIsOver = (app: App) => vi.waitFor(() => expect(app.barriers().at(-1)?.boundary).toBe('turn'))

const AFTER_ONE_CALL = {
  'step,dispatched,default': 2,
  'request,dispatched,default': 2,
  'tool,dispatched,default': 1,
  'turn,dispatched,default': 1,
}

test('[D21] every series of the contract is there at 0 on the first scrape, and nothing else is', async () => {
  const { scrape: scrapeIt } = await createScraped()
  const samples = await scrapeIt()
  const expected = new Set(zeroSeries('default'))
  const found = [...samples.series.keys()].filter((key) => key.startsWith('dsh_checkpoint_'))
  expect(new Set(found)).toEqual(expected)
  const zero = [...samples.series]
    .filter(([key, value]) => key.startsWith('dsh_checkpoint_') && value !== 0)
    .map(([key]) => key)
  expect(zero).toEqual([contractKey(sc.METRIC_POLICY_ACTIVE, {})])
})

test('a turn whose writes are all durable is counted once at each boundary', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  await app.say(agent, 'hi')
  await turnIsOver(app)
  const samples = await scrapeIt()
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual(AFTER_ONE_CALL)
  expect(samples.nonZero(sc.METRIC_FLUSH_DURATION)).toEqual({
    'step,durable': 2,
    'request,durable': 2,
    'tool,durable': 1,
    'turn,durable': 1,
  })
  expect(samples.nonZero(sc.METRIC_FLUSH_EVENTS)).toEqual({ step: 2, request: 2, tool: 1, turn: 1 })
  expect(samples.nonZero(sc.METRIC_REJECTIONS)).toEqual({})
  expect(samples.nonZero(sc.METRIC_UNGUARDED)).toEqual({})
  const waited = app
    .barriers()
    .reduce((sum, { boundary, durationMs }) => sum + (boundary === 'step' ? durationMs : 0), 0)
  const attributes = { [sc.ATTR_BOUNDARY]: 'step', [sc.ATTR_OUTCOME]: 'dispatched', [sc.ATTR_STRATEGY]: 'default' }
  expect(samples.value(sc.METRIC_BARRIER_DURATION, attributes, '_sum')).toBeCloseTo(waited / 1_000, 9)
})

test('a call whose flush fails with ENOSPC is one rejection of that class, and no label holds the message', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  app.flushes.on = () => {
    if (isAt(app, 'tool')) throw storageError('ENOSPC')
  }
  await app.say(agent, 'hi')
  await turnIsOver(app)
  const samples = await scrapeIt()
  const { 'tool,dispatched,default': _, ...others } = AFTER_ONE_CALL
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({ ...others, 'tool,rejected,default': 1 })
  expect(samples.nonZero(sc.METRIC_FLUSH_DURATION)).toMatchObject({ 'tool,rejected': 1 })
  expect(samples.nonZero(sc.METRIC_REJECTIONS)).toEqual({ 'tool,ENOSPC': 1 })
  expect(samples.body).not.toContain('private')
})

test('a write started at the end of a turn that fails is a rejection of a released barrier', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  app.flushes.on = () => {
    if (isAt(app, 'turn')) throw storageError('EIO')
  }
  await app.say(agent, 'hi')
  await turnIsOver(app)
  const samples = await scrapeIt()
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual(AFTER_ONE_CALL)
  expect(samples.nonZero(sc.METRIC_FLUSH_DURATION)).toMatchObject({ 'turn,rejected': 1 })
  expect(samples.nonZero(sc.METRIC_REJECTIONS)).toEqual({ 'turn,EIO': 1 })
})

test('a hung flush shows as an open barrier that ages; aborted, it is counted once, and the late end adds nothing', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => (isAt(app, 'tool') ? gate.promise : undefined)
  const turn = app.say(agent, 'hi')
  await vi.waitFor(() => expect(isAt(app, 'tool')).toBe(true))
  const first = await scrapeIt()
  const second = await scrapeIt()
  expect(first.nonZero(sc.METRIC_ACTIVE)).toEqual({ tool: 1 })
  const age = first.value(sc.METRIC_OLDEST_AGE) ?? 0
  expect(age).toBeGreaterThan(0)
  expect(second.value(sc.METRIC_OLDEST_AGE)).toBeGreaterThan(age)
  expect(second.value(sc.METRIC_UNFLUSHED_AGE)).toBeGreaterThan(0)

  agent.cancel({ kind: 'user' } as never)
  await turn
  await turnIsOver(app)
  const aborted = await scrapeIt()
  expect(aborted.nonZero(sc.METRIC_BARRIER_DURATION)).toMatchObject({ 'tool,aborted,default': 1 })
  expect(aborted.nonZero(sc.METRIC_FLUSH_DURATION)).toMatchObject({ 'tool,pending': 1 })
  expect(aborted.value(sc.METRIC_ABORTED)).toBe(1)
  expect(aborted.nonZero(sc.METRIC_REJECTIONS)).toEqual({})
  expect(aborted.nonZero(sc.METRIC_ACTIVE)).toEqual({})
  expect(aborted.value(sc.METRIC_OLDEST_AGE)).toBe(0)

  gate.resolve()
  await gate.promise
  const later = await scrapeIt()
  for (const metric of [
    sc.METRIC_BARRIER_DURATION,
    sc.METRIC_FLUSH_DURATION,
    sc.METRIC_FLUSH_EVENTS,
    sc.METRIC_ABORTED,
  ] as const) {
    expect(later.nonZero(metric)).toEqual(aborted.nonZero(metric))
  }
})

test('a barrier that hits its limit is a timeout and a rejection of that class', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped({ timeoutMs: 300 })
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => (isAt(app, 'tool') ? gate.promise : undefined)
  await app.say(agent, 'hi')
  await turnIsOver(app)
  gate.resolve()
  const samples = await scrapeIt()
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toMatchObject({ 'tool,timeout,default': 1 })
  expect(samples.nonZero(sc.METRIC_REJECTIONS)).toMatchObject({ 'tool,timeout': 1 })
})

test.each([
  {
    requireConfirmed: false,
    flushes: { 'step,unconfirmed': 2, 'request,unconfirmed': 2, 'tool,unconfirmed': 1 },
    rejections: {},
    unguarded: { 'request,default': 2, 'tool,default': 1 },
  },
  { requireConfirmed: true, flushes: { 'step,unconfirmed': 1 }, rejections: { 'step,unconfirmed': 1 }, unguarded: {} },
])(
  'a flush that no backend took part in, with requireConfirmed $requireConfirmed',
  async ({ requireConfirmed, ...expected }) => {
    const { app, agent, scrape: scrapeIt } = await createScraped({ requireConfirmed, turnBoundary: false })
    // The host answers false when no session/flush listener took part; the policy reads the method when it is mounted.
    const store = (app.ctx.sessions as unknown as Record<symbol, { flush(): Promise<boolean> }>)[
      Symbol.for('cordis.original')
    ]
    if (store === undefined) throw new Error('the host no longer wraps its services')
    vi.spyOn(store, 'flush').mockResolvedValue(false)
    await app.plugins[1]?.restart()
    await app.plugins[2]?.await()
    await app.say(agent, 'hi')
    const samples = await scrapeIt()
    expect(samples.nonZero(sc.METRIC_FLUSH_DURATION)).toEqual(expected.flushes)
    expect(samples.nonZero(sc.METRIC_REJECTIONS)).toEqual(expected.rejections)
    expect(samples.nonZero(sc.METRIC_UNGUARDED)).toEqual(expected.unguarded)
  },
)

test('a strategy that mounts has its zeros on the next scrape; its faults are counted under its name', async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  const before = await scrapeIt()
  expect([...before.series.keys()].filter((key) => key.includes('broken'))).toEqual([])
  const decide = () => {
    throw new Error('no idea')
  }
  await app.mount({
    name: 'broken',
    apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name: 'broken', decide }),
  })
  const mounted = await scrapeIt()
  const missing = zeroSeries('broken').filter((key) => !mounted.series.has(key))
  expect(missing).toEqual([])
  expect([...mounted.series].filter(([key, value]) => key.includes('broken') && value !== 0)).toEqual([])
  await app.say(agent, 'hi')
  await turnIsOver(app)
  const samples = await scrapeIt()
  expect(samples.nonZero(sc.METRIC_STRATEGY_FAULTS)).toEqual({
    'step,broken': 2,
    'request,broken': 2,
    'tool,broken': 1,
    'turn,broken': 1,
  })
})

test('calls that recovery answered are counted by its verdict', async () => {
  const fake = await createFake()
  const call = { kind: 'recovered', sessionId: 's', callId: 'c', turn: 1, step: 1 } as const
  for (const recovery of ['unknown', 'not_started', 'unknown'] as const) fake.announce({ ...call, recovery })
  expect((await scrape(fake.port)).nonZero(sc.METRIC_RECOVERED)).toEqual({ unknown: 2, not_started: 1 })
})

test('the flush that several barriers share is one sample, told by one of them', async () => {
  const fake = await createFake()
  fake.announce({ flushMs: 5, events: 3 })
  fake.announce({ flushMs: 5, events: 0, sharedFlush: true })
  fake.announce({ decision: 'skip', flushOutcome: 'none', flushMs: undefined })
  const samples = await scrape(fake.port)
  expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({ 'tool,dispatched,default': 3 })
  expect(samples.nonZero(sc.METRIC_FLUSH_DURATION)).toEqual({ 'tool,durable': 1 })
  expect(samples.nonZero(sc.METRIC_FLUSH_EVENTS)).toEqual({ tool: 1 })
})

test('nonsense decisions are faults and overruled ones are not; a cancelled request is no aborted call', async () => {
  const fake = await createFake()
  for (const overruled of ['threw', 'invalid', 'guarded', undefined] as const) fake.announce({ overruled })
  for (const boundary of sc.BOUNDARIES) fake.announce({ boundary, outcome: 'aborted' })
  const samples = await scrape(fake.port)
  expect(samples.nonZero(sc.METRIC_STRATEGY_FAULTS)).toEqual({ 'tool,default': 2 })
  expect(samples.value(sc.METRIC_ABORTED)).toBe(1)
})

test('[D17] 0.8 ms, 4 ms, 30 ms, 700 ms and 12 s fall into five buckets of the policy, in seconds', async () => {
  const fake = await createFake()
  for (const flushMs of [0.8, 4, 30, 700, 12_000]) fake.announce({ flushMs })
  const cumulative = sc.DURATION_BUCKETS_SECONDS.map((le) => bucket('durable', le))
  const samples = await scrape(fake.port)
  const counts = cumulative.map((key) => samples.series.get(key) ?? Number.NaN)
  const filled = sc.DURATION_BUCKETS_SECONDS.filter((_, index) => counts[index] !== (counts[index - 1] ?? 0))
  expect(filled).toEqual([0.001, 0.005, 0.05, 1, 30])

  function bucket(flushOutcome: string, le: number): string {
    const attributes = { [sc.ATTR_BOUNDARY]: 'tool', [sc.ATTR_FLUSH_OUTCOME]: flushOutcome, le: String(le) }
    return contractKey(sc.METRIC_FLUSH_DURATION, attributes, '_bucket')
  }
})

test('bounds from the config of the policy are the bounds of the endpoint', async () => {
  const { scrape: scrapeIt } = await createScraped({ durationBucketsSeconds: [0.002, 0.2] })
  const { body } = await scrapeIt()
  for (const metric of [sc.METRIC_BARRIER_DURATION, sc.METRIC_FLUSH_DURATION] as const) {
    const bounds = [
      ...body.matchAll(new RegExp(`^${sc.INSTRUMENTS[metric].prometheus}_bucket.*le="([^"]+)"`, 'gm')),
    ].map(([, le]) => le)
    expect([...new Set(bounds)]).toEqual(['0.002', '0.2', '+Inf'])
  }
})

test('strategy names beyond the limit fold into one', async () => {
  const fake = await createFake()
  const names = Array.from({ length: sc.MAX_STRATEGY_NAMES + 4 }, (_, index) => `strategy-${index}`)
  for (const strategy of names) fake.announce({ strategy })
  const first = await scrape(fake.port)
  for (const strategy of names) fake.announce({ strategy: `${strategy}-again` })
  const samples = await scrape(fake.port)
  expect(samples.series.size).toBe(first.series.size)
  const counted = samples.nonZero(sc.METRIC_BARRIER_DURATION)
  // The default was there first.
  expect(Object.keys(counted)).toHaveLength(sc.MAX_STRATEGY_NAMES)
  expect(counted[`tool,dispatched,${sc.OTHER}`]).toBe(5 + names.length)
})

test('[D19] 5,000 sessions with random tools, strategies and errors leave no more series than 100 did', async () => {
  const fake = await createFake()
  let serial = 0
  const session = () => {
    for (const boundary of sc.BOUNDARIES) {
      serial += 1
      const errorType = serial % 7 === 0 ? sc.ERROR_TYPES[serial % sc.ERROR_TYPES.length] : undefined
      fake.announce({
        boundary,
        sessionId: `session-${serial}`,
        callId: `call-${serial}`,
        toolName: `tool-${serial}`,
        model: `model-${serial}`,
        strategy: `strategy-${serial}`,
        reason: `because of /tmp/${serial}`,
        outcome: sc.OUTCOMES[serial % sc.OUTCOMES.length],
        flushOutcome: sc.FLUSH_OUTCOMES[serial % (sc.FLUSH_OUTCOMES.length - 1)],
        errorType,
        traceId: serial.toString(16).padStart(32, '0'),
        spanId: serial.toString(16).padStart(16, '0'),
      })
    }
  }
  for (let index = 0; index < 100; index += 1) session()
  const hundred = await scrape(fake.port)
  for (let index = 100; index < 5_000; index += 1) session()
  const all = await scrape(fake.port)
  expect([...all.series.keys()]).toEqual([...hundred.series.keys()])
  expect(all.body).not.toMatch(/session-|call-|tool-|model-|\/tmp/)
})

test('[D19] 100 real sessions with random tools leave as many series as one', async () => {
  const port = await freePort()
  const names = Array.from({ length: 100 }, (_, index) => `tool_${index}`)
  const app = await createApp({
    tools: names.map((name, index) =>
      createTool(name, () => {
        if (index % 3 === 0) throw new Error(`cannot read /home/somebody/${index}`)
      }),
    ),
    plugins: [[policy], [prometheus, { port }]],
  })
  let before: Samples | undefined
  for (const name of names) {
    app.model.push([{ name }])
    const { agent } = await app.createAgent(`session-${name}`)
    await app.say(agent, 'hi')
    before ??= await scrape(port)
  }
  const after = await scrape(port)
  expect([...after.series.keys()]).toEqual([...(before?.series.keys() ?? [])])
  expect(after.body).not.toMatch(/tool_\d|session-|somebody/)
  expect(after.nonZero(sc.METRIC_BARRIER_DURATION)).toMatchObject({
    'tool,dispatched,default': 100,
    'request,dispatched,default': 200,
  })
})

test("the host's default registry stays empty", async () => {
  const { app, agent, scrape: scrapeIt } = await createScraped()
  await app.say(agent, 'hi')
  await scrapeIt(OPENMETRICS)
  expect(register.getMetricsAsArray()).toEqual([])
})

/** Every series that one strategy brings, and those that belong to none. */
function zeroSeries(strategy: string): string[] {
  const keys: string[] = []
  for (const [name, { kind, attributes }] of Object.entries(sc.INSTRUMENTS)) {
    const instrument = name as keyof typeof sc.INSTRUMENTS
    for (const labels of combinations(instrument, attributes, strategy)) {
      if (kind !== 'histogram') keys.push(contractKey(instrument, labels))
      else {
        const bounds = instrument === sc.METRIC_FLUSH_EVENTS ? sc.EVENT_BUCKETS : sc.DURATION_BUCKETS_SECONDS
        keys.push(contractKey(instrument, labels, '_sum'), contractKey(instrument, labels, '_count'))
        for (const le of [...bounds, '+Inf'])
          keys.push(contractKey(instrument, { ...labels, le: String(le) }, '_bucket'))
      }
    }
  }
  return keys
}

function combinations(instrument: string, attributes: readonly string[], strategy: string): Record<string, string>[] {
  const values: Record<string, readonly string[]> = {
    [sc.ATTR_BOUNDARY]: instrument === sc.METRIC_UNGUARDED ? sc.GUARDED_BOUNDARIES : sc.BOUNDARIES,
    [sc.ATTR_OUTCOME]: sc.OUTCOMES,
    [sc.ATTR_FLUSH_OUTCOME]: sc.FLUSH_OUTCOMES.filter((outcome) => outcome !== 'none'),
    [sc.ATTR_STRATEGY]: [strategy],
    [sc.ATTR_RECOVERY]: sc.RECOVERIES,
    [sc.ATTR_ERROR_TYPE]: sc.ERROR_TYPES,
  }
  return attributes.reduce<Record<string, string>[]>(
    (all, attribute) =>
      all.flatMap((labels) => (values[attribute] ?? []).map((value) => ({ ...labels, [attribute]: value }))),
    [{}],
  )
}
