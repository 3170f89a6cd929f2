import { expect, test, vi } from 'vitest'
import * as policy from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import * as sc from '../../src/semconv.ts'
import { createTool } from '../../src/testing/harness.ts'
import { createApp, storageError } from '../support/app.ts'
import { contractKey, freePort, scrape } from '../support/scrape.ts'
import { registerSdk } from '../support/sdk.ts'

const SIGNAL = new AbortController().signal

test('[D17] flushes of 0.8 ms, 4 ms, 30 ms, 700 ms and 12 s fall into the same five buckets in OpenTelemetry and in the scrape', async () => {
  const sdk = registerSdk()
  const port = await freePort()
  const app = await createApp({ plugins: [[policy], [prometheus, { port }]], tools: [createTool('write', () => 'ok')] })
  const { agent } = await app.createAgent()
  let nowMs = 1_000
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  for (const [index, flushMs] of [0.8, 4, 30, 700, 12_000].entries()) {
    app.flushes.on = () => void (nowMs += flushMs)
    await app.ctx.tools.execute({
      callId: `call-${index}` as never,
      name: 'write',
      arguments: {},
      agent,
      signal: SIGNAL,
    })
  }
  clock.mockRestore()
  const samples = await scrape(port)
  const attributes = {
    [sc.METRIC_BARRIER_DURATION]: {
      [sc.ATTR_BOUNDARY]: 'tool',
      [sc.ATTR_OUTCOME]: 'dispatched',
      [sc.ATTR_STRATEGY]: 'default',
    },
    [sc.METRIC_FLUSH_DURATION]: { [sc.ATTR_BOUNDARY]: 'tool', [sc.ATTR_FLUSH_OUTCOME]: 'durable' },
  }
  for (const metric of [sc.METRIC_BARRIER_DURATION, sc.METRIC_FLUSH_DURATION] as const) {
    const [point] = await sdk.histogram(metric)
    const { boundaries = [], counts = [] } = point?.value.buckets ?? {}
    expect(boundaries).toEqual(sc.DURATION_BUCKETS_SECONDS)
    expect(boundaries.filter((_, index) => counts[index] === 1)).toEqual([0.001, 0.005, 0.05, 1, 30])
    const cumulative = boundaries.map((le) =>
      samples.value(metric, { ...attributes[metric], le: String(le) }, '_bucket'),
    )
    expect(cumulative).toEqual(
      boundaries.map((_, index) => counts.slice(0, index + 1).reduce((sum, count) => sum + count, 0)),
    )
    expect(samples.series.get(contractKey(metric, attributes[metric], '_sum'))).toBeCloseTo(12.7348, 6)
  }
})

test('[D19] two hundred sessions with random tools and errors leave as many OpenTelemetry points as twenty, none with an id, a path or a message', async () => {
  const sdk = registerSdk()
  const tools = Array.from({ length: 50 }, (_, index) => createTool(`tool_${index}`, () => 'ok'))
  const app = await createApp({ config: { turnBoundary: false }, tools })
  const codes = ['ENOSPC', 'EIO', 'EROFS', 'ENOENT', 'SOMETHING_OF_ITS_OWN']
  let calls = 0
  const session = async (number: number) => {
    const { agent, dispose } = await app.createAgent(`session-${number}`)
    for (let index = 0; index < 3; index += 1) {
      const serial = (calls += 1)
      app.flushes.on = () => {
        if (serial % 3 === 0)
          throw Object.assign(storageError(codes[serial % codes.length] ?? ''), {
            message: `cannot write /home/somebody/${serial}`,
          })
      }
      await app.ctx.tools.execute({
        callId: `call-${serial}` as never,
        name: `tool_${serial % 50}`,
        arguments: {},
        agent,
        signal: SIGNAL,
      })
    }
    app.flushes.on = undefined
    await dispose()
  }
  const points = async () =>
    Object.fromEntries(
      await Promise.all((await sdk.names()).map(async (name) => [name, await sdk.points(name)] as const)),
    )
  const countsOf = (all: Awaited<ReturnType<typeof points>>) =>
    Object.fromEntries(Object.entries(all).map(([name, list]) => [name, list.length]))
  for (let number = 0; number < 20; number += 1) await session(number)
  const twenty = await points()
  for (let number = 20; number < 200; number += 1) await session(number)
  const all = await points()
  expect(countsOf(all)).toEqual(countsOf(twenty))
  expect(JSON.stringify(all)).not.toMatch(/session-|call-|tool_|somebody|overflow|SOMETHING/)
  const total = all[sc.METRIC_BARRIER_DURATION]?.reduce((sum, [, count]) => sum + count, 0)
  expect(total).toBe(600)
})
