import dns from 'node:dns'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import { PerformanceObserver } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { Counter, register } from 'prom-client'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { LocalServer, RETRY_MS } from '../src/http/server.ts'
import * as policy from '../src/index.ts'
import { LimitedLog } from '../src/log.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError } from './support/app.ts'
import { ask, createFake, freePort, OPENMETRICS, Samples, scrape } from './support/scrape.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** Disposal is over at once; this is for a machine that is busy. */
const DISPOSE_MS = 2_000

/** Occupy a port until the test, or the caller, ends it. */
async function occupy(port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return server
}

type LookedUp = (error: Error | null, addresses?: readonly dns.LookupAddress[]) => void

const LOOPBACK = [{ address: '127.0.0.1', family: 4 }]

/** Answer lookups of one host name from the test; Node looks up addresses, too, and those are left alone. */
function intercept(name: string, answer: (callback: LookedUp) => void) {
  const { lookup } = dns
  return vi.spyOn(dns, 'lookup').mockImplementation((host: string, ...rest: unknown[]) => {
    if (host === name) answer(rest.at(-1) as LookedUp)
    else (lookup as (...all: unknown[]) => void)(host, ...rest)
  })
}

const isRefused = (port: number) =>
  ask(port).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
  )

test('[D18] five remounts of plugin and policy: no clash, one HELP and TYPE a family, counters from 0, other registries untouched', async () => {
  const host = new Counter({ name: 'host_things_total', help: 'Things of the host.' })
  onTestFinished(() => register.clear())
  host.inc(7)
  const [port, otherPort] = [await freePort(), await freePort()]
  const other = await createApp({ plugins: [[policy], [prometheus, { port: otherPort }]] })
  const { agent: otherAgent } = await other.createAgent()
  await other.say(otherAgent, 'hi')
  const app = await createApp({
    plugins: [
      [policy, { turnBoundary: false }],
      [prometheus, { port }],
    ],
  })
  const { agent } = await app.createAgent()
  for (let round = 0; round < 5; round += 1) {
    await app.say(agent, 'hi')
    for (const accept of [undefined, OPENMETRICS]) {
      const samples = await scrape(port, accept)
      expect(samples.nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({
        'step,dispatched,default': 1,
        'request,dispatched,default': 1,
      })
      const comments = samples.body.split('\n').filter((line) => /^# (HELP|TYPE)/.test(line))
      const families = comments.map((line) => line.split(' ').slice(0, 3).join(' '))
      expect(new Set(families).size).toBe(families.length)
    }
    const [, policyFiber, plugin] = app.plugins
    await (round % 2 === 0 ? plugin : policyFiber)?.restart()
    await plugin?.await()
    expect((await scrape(port)).nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({})
  }
  expect(await register.metrics()).toContain('host_things_total 7')
  expect((await scrape(otherPort)).nonZero(sc.METRIC_BARRIER_DURATION)).toMatchObject({ 'step,dispatched,default': 1 })
})

test('[D18] reloads under a scraper that keeps its connection: each answer is whole, and the endpoint comes back', async () => {
  const fake = await createFake()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const scraping = new AbortController()
  let answers = 0
  const scraper = (async () => {
    while (!scraping.signal.aborted) {
      try {
        const { status, body } = await ask(fake.port, { agent, headers: { accept: OPENMETRICS } })
        expect({ status, whole: body.endsWith('# EOF\n') }).toEqual({ status: 200, whole: true })
        answers += 1
      } catch (error) {
        // Between two mounts there is nobody to answer.
        if (!['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      }
    }
  })()
  for (let round = 0; round < 10; round += 1) {
    const seen = answers
    await vi.waitFor(() => expect(answers).toBeGreaterThan(seen + 1), { interval: 1 })
    const startedAt = performance.now()
    await fake.plugin.restart()
    expect(performance.now() - startedAt).toBeLessThan(DISPOSE_MS)
    expect(fake.observers.size).toBe(1)
  }
  const seen = answers
  await vi.waitFor(() => expect(answers).toBeGreaterThan(seen + 1), { interval: 1 })
  scraping.abort()
  await scraper
  expect(fake.logs.filter((line) => line.includes('cannot listen'))).toEqual([])
})

test('clients that do not finish their request or do not read the answer cannot hold the disposal', async () => {
  const fake = await createFake()
  const asking = connect(fake.port, '127.0.0.1')
  const reading = connect(fake.port, '127.0.0.1')
  const sockets = [asking, reading]
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const closed = sockets.map((socket) => new Promise((resolve) => socket.on('error', () => {}).once('close', resolve)))
  asking.resume().write('GET /metrics HTTP/1.1\r\nhost:')
  let renders = 0
  const { state } = fake
  fake.state = () => {
    renders += 1
    return state()
  }
  reading.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(200))
  await vi.waitFor(() => expect(renders).toBeGreaterThan(0))
  const startedAt = performance.now()
  await fake.plugin.dispose()
  reading.resume()
  await Promise.all(closed)
  expect(performance.now() - startedAt).toBeLessThan(DISPOSE_MS)
  expect(await isRefused(fake.port)).toBe(true)
})

test('an unloaded policy takes the endpoint with it, and brings it back on the same port', async () => {
  const port = await freePort()
  const app = await createApp({ plugins: [[policy], [prometheus, { port }]] })
  await scrape(port)
  await app.plugins[1]?.dispose()
  expect(await isRefused(port)).toBe(true)
  await app.mount(policy)
  await app.plugins[2]?.await()
  expect((await scrape(port)).value(sc.METRIC_POLICY_ACTIVE)).toBe(1)
})

test('[D11] disposed while its host name is looked up, it ends at once and leaves no socket; the next mount listens once', async () => {
  const port = await freePort()
  const pending: LookedUp[] = []
  const lookup = intercept('localhost', (callback) => void pending.push(callback))
  for (let round = 0; round < 20; round += 1) {
    const { plugin, logs } = await createFake({ host: 'localhost', port })
    const startedAt = performance.now()
    await plugin.dispose()
    expect(performance.now() - startedAt).toBeLessThan(DISPOSE_MS)
    expect(pending).toHaveLength(1)
    pending.pop()?.(null, LOOPBACK)
    expect(await isRefused(port)).toBe(true)
    expect(logs).toEqual([])
  }
  const fake = await createFake({ host: 'localhost', port })
  pending.pop()?.(null, LOOPBACK)
  await vi.waitFor(() => expect(fake.logs).toEqual([expect.stringContaining(`metrics at http://localhost:${port}/`)]))
  expect((await ask(port)).status).toBe(200)
  lookup.mockRestore()
})

test('[D16] a taken port is one error that names it; the policy guards as ever, and nothing is thrown into the host', async () => {
  const port = await freePort()
  await occupy(port)
  const ran: string[] = []
  const app = await createApp({
    model: new ScriptedModel([[{ name: 'write', id: 'a' }], [{ name: 'write', id: 'b' }]]),
    tools: [createTool('write', () => ran.push('write'))],
    plugins: [[policy], [prometheus, { port }]],
  })
  await vi.waitFor(() =>
    expect(app.logs.filter((line) => line.includes(`cannot listen on 127.0.0.1:${port}`))).toHaveLength(1),
  )
  const { agent } = await app.createAgent()
  let failed = false
  app.flushes.on = () => {
    if (failed || !app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')) return
    failed = true
    throw storageError('ENOSPC')
  }
  await app.say(agent, 'hi')
  expect(ran).toEqual(['write'])
  expect(
    app
      .barriers()
      .filter(({ boundary }) => boundary === 'tool')
      .map(({ outcome }) => outcome),
  ).toEqual(['rejected', 'dispatched'])
  expect(app.logs.filter((line) => line.includes('cannot listen'))).toHaveLength(1)
})

test('while the port is taken metrics are kept; once it is free a later attempt serves them', async () => {
  const port = await freePort()
  const squatter = await occupy(port)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const fake = await createFake({ port })
  await vi.waitFor(() => expect(fake.logs.join()).toContain('the port is taken (EADDRINUSE)'))
  fake.announce({})
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
    vi.advanceTimersByTime(RETRY_MS)
  }
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
  // The same cause is not said again.
  expect(fake.logs).toHaveLength(1)
  squatter.close()
  await once(squatter, 'close')
  vi.advanceTimersByTime(RETRY_MS)
  expect((await scrape(port)).nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({ 'tool,dispatched,default': 1 })
  expect(fake.logs.at(-1)).toContain(`metrics at http://127.0.0.1:${port}/metrics`)
  expect(vi.getTimerCount()).toBe(0)
})

test('disposed between two attempts, it tries no more', async () => {
  const port = await freePort()
  await occupy(port)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const fake = await createFake({ port })
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
  await fake.plugin.dispose()
  expect(vi.getTimerCount()).toBe(0)
})

test('an attempt that fails in the tick in which the server is closed is the last one, and is not said', async () => {
  const port = await freePort()
  await occupy(port)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  let answer: LookedUp | undefined
  intercept('localhost', (callback) => void (answer = callback))
  const lines: string[] = []
  const logger = {
    info: (line: string) => lines.push(line),
    warn: (line: string) => lines.push(line),
    error: (line: string) => lines.push(line),
  }
  const config = { host: 'localhost', port }
  const texts = { plugin: 'test', path: '/', serves: 'nothing', unreachable: 'nobody minds' }
  const server = new LocalServer({ ...texts, config, answer: async () => {}, logger, log: new LimitedLog(logger) })
  server.open()
  answer?.(null, LOOPBACK)
  await server.close()
  await new Promise(setImmediate)
  expect({ lines, timers: vi.getTimerCount() }).toEqual({ lines: [], timers: 0 })
})

test('of two apps on one port the second waits, and takes over when the first is gone', async () => {
  const first = await createFake()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const second = await createFake({ port: first.port })
  await vi.waitFor(() => expect(second.logs.join()).toContain(`cannot listen on 127.0.0.1:${first.port}`))
  second.announce({})
  expect((await scrape(first.port)).nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({})
  await first.plugin.dispose()
  vi.advanceTimersByTime(RETRY_MS)
  expect((await scrape(first.port)).nonZero(sc.METRIC_BARRIER_DURATION)).toEqual({ 'tool,dispatched,default': 1 })
})

test('an address that is not ours, or no address at all, is an error in the log and no more', async () => {
  for (const [host, code] of [
    ['192.0.2.1', 'EADDRNOTAVAIL'],
    ['nowhere.invalid', 'ENOTFOUND'],
  ] as const) {
    if (code === 'ENOTFOUND')
      intercept(host, (callback) => process.nextTick(callback, Object.assign(new Error(code), { code })))
    const fake = await createFake({ host, allowRemote: true })
    await vi.waitFor(() => expect(fake.logs.join()).toContain(`cannot listen on ${host}:${fake.port}: ${code}`))
    await fake.plugin.dispose()
  }
})

test('neither the server nor a kept connection keeps a process alive that is otherwise done', async () => {
  const script = `
    import { Context } from '@deepseek-ai/cordis'
    import * as policy from './src/index.ts'
    import * as prometheus from './src/prometheus.ts'
    import { createHarness } from './src/testing/harness.ts'
    const { ctx } = await createHarness({ root: '/nonexistent', plugins: [[policy], [prometheus, { port: 0 }]] })
    ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => console.log(String(args[0])) })
    for (const { args } of ctx.logger.buffer) console.log(String(args[0]))
    process.stdin.once('data', () => process.stdin.destroy())`
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const exit = once(child, 'exit')
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  await vi.waitFor(() => expect(output).toMatch(/metrics at http/), 10_000)
  const port = Number(/metrics at http:\/\/127\.0\.0\.1:(\d+)\/metrics/.exec(output)?.[1])
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  expect((await ask(port, { agent })).status).toBe(200)
  const startedAt = performance.now()
  child.stdin.write('done\n')
  expect(await exit).toEqual([0, null])
  // Less than the 5 s for which Node keeps an idle connection.
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test('a busy event loop shows as lag, an idle one does not, and two scrapes in a row never give NaN', async () => {
  const fake = await createFake()
  const lag = async (statistic: keyof typeof sc.FAMILIES_EVENT_LOOP_LAG) =>
    (await scrape(fake.port)).series.get(sc.FAMILIES_EVENT_LOOP_LAG[statistic]) ?? Number.NaN
  await vi.waitFor(async () => {
    const until = performance.now() + 100
    while (performance.now() < until);
    expect(await lag('max')).toBeGreaterThan(0.05)
  })
  await vi.waitFor(async () => expect(await lag('p50')).toBeLessThan(0.005), 5_000)
  const bodies = await Promise.all(Array.from({ length: 5 }, () => ask(fake.port)))
  for (const { body } of bodies) {
    const values = Object.values(sc.FAMILIES_EVENT_LOOP_LAG).map((family) => new Samples(body).series.get(family))
    expect(values.every((value) => value !== undefined && value >= 0 && value < 10)).toBe(true)
  }
})

test('garbage collection and the start of the process are there, and the watch ends with the plugin', async () => {
  const disconnect = vi.spyOn(PerformanceObserver.prototype, 'disconnect')
  const fake = await createFake()
  const { series } = await scrape(fake.port)
  const startedAt = series.get(sc.FAMILY_PROCESS_START) ?? 0
  expect(Math.abs(startedAt - (Date.now() / 1_000 - process.uptime()))).toBeLessThan(2)
  const collections = (samples: Samples) =>
    [...samples.series].reduce(
      (sum, [key, value]) => sum + (key.startsWith(`${sc.FAMILY_GC_DURATION}_count`) ? value : 0),
      0,
    )
  await vi.waitFor(async () => {
    Array.from({ length: 200_000 }, (_, index) => ({ index }))
    expect(collections(await scrape(fake.port))).toBeGreaterThan(0)
  })
  await fake.plugin.dispose()
  expect(disconnect).toHaveBeenCalledTimes(1)
})
