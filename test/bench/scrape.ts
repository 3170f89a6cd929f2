/**
 * What one scrape of a busy process costs its event loop: `node test/bench/scrape.ts`.
 *
 * Agents work without a pause on the real harness while a child process scrapes over a kept connection. The time counted
 * runs from Node's parse of the request to the end of the answer; nothing in between yields to the loop.
 */
import { spawn } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import Table from 'cli-table3'
import * as policy from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import { MAX_STRATEGY_NAMES } from '../../src/semconv.ts'
import { createHarness, createTool, type Harness } from '../../src/testing/harness.ts'

const { values } = parseArgs({
  options: { scrapes: { type: 'string', default: '200' }, agents: { type: 'string', default: '4' } },
})
const SCRAPES = Number(values.scrapes)
const AGENTS = Number(values.agents)

const ACCEPT = { text: 'text/plain;version=0.0.4', openmetrics: 'application/openmetrics-text;version=1.0.0' }

const root = await mkdtemp(join(tmpdir(), 'scrape-'))
const port = await freePort()
const harness = await createHarness({
  root,
  plugins: [[policy], [prometheus, { port }]],
  tools: [createTool('work', () => 'done')],
})

let durations: number[] = []
subscribe('http.server.request.start', (message) => {
  const { response } = message as { response: ServerResponse }
  const startedAt = performance.now()
  const end = response.end.bind(response)
  response.end = ((...args: Parameters<typeof end>) => {
    const ended = end(...args)
    durations.push(performance.now() - startedAt)
    return ended
  }) as typeof response.end
})

const stop = new AbortController()
const work = Promise.all(Array.from({ length: AGENTS }, () => keepBusy(harness)))
const table = new Table({ head: ['format', 'strategies', 'bytes', 'p50 ms', 'p99 ms', 'max ms'] })
await scrapeBoth('1')
for (let index = 0; index <= MAX_STRATEGY_NAMES; index += 1) {
  const fiber = await harness.mount(strategyNamed(`strategy-${index}`))
  await scrape('text', 1)
  await fiber.dispose()
}
await scrapeBoth(`${MAX_STRATEGY_NAMES} and the fold`)
stop.abort()
await work
await harness.dispose()
await rm(root, { recursive: true, force: true })
console.log(table.toString())

async function scrapeBoth(strategies: string): Promise<void> {
  for (const format of ['text', 'openmetrics'] as const) {
    await scrape(format, 20)
    durations = []
    const bytes = await scrape(format, SCRAPES)
    const sorted = durations.toSorted((a, b) => a - b)
    const at = (quantile: number) => (sorted[Math.floor((sorted.length - 1) * quantile)] ?? Number.NaN).toFixed(2)
    table.push([format, strategies, bytes, at(0.5), at(0.99), at(1)])
  }
}

/** Scrape from another process, so that only the server's side is counted; resolves to the size of the last body. */
async function scrape(format: keyof typeof ACCEPT, count: number): Promise<number> {
  const script = `
    let bytes = 0
    for (let i = 0; i < ${count}; i += 1) {
      const answer = await fetch('http://127.0.0.1:${port}/metrics', { headers: { accept: '${ACCEPT[format]}' } })
      if (answer.status !== 200) throw new Error('status ' + answer.status)
      bytes = (await answer.text()).length
    }
    console.log(bytes)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`the scraper ended with ${code}`)
  return Number(output)
}

async function keepBusy(app: Harness): Promise<void> {
  while (!stop.signal.aborted) {
    // A fresh session now and then, or the history would become the work.
    const { agent } = await app.createAgent()
    for (let turn = 0; !stop.signal.aborted && turn < 50; turn += 1) {
      app.model.push([{ name: 'work' }])
      await app.say(agent, 'go on')
    }
  }
}

function strategyNamed(name: string): object {
  return {
    name,
    apply: (ctx: Context) => ctx.provide('checkpointStrategy', { name, decide: () => ({ kind: 'flush' }) }),
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: free } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return free
}
