/**
 * What the inspector costs the agent's process: `node test/bench/inspector.ts`.
 *
 * A record; an event loop that is idle, without the plugin, without a page and with open ones; and the turns of a busy
 * agent, the three interleaved. The pages are read by another process.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import * as policy from '../../src/index.ts'
import * as inspector from '../../src/inspector.ts'
import { Recorder } from '../../src/inspector/recorder.ts'
import { createHarness, createTool, ScriptedModel } from '../../src/testing/harness.ts'

const PORT = 29_466
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '4' } },
})
const ROUNDS = Number(values.rounds)
const IDLE_MS = Number(values.seconds) * 1_000
const TURNS = 40
const RECORDS = 200_000
const PAGES = { none: undefined, loaded: 0, 'one page': 1, 'four pages': 4 } as const

const root = mkdtempSync(join(tmpdir(), 'inspector-bench-'))
const model = new ScriptedModel()
const harness = await createHarness({ root, model, tools: [createTool('work', () => 'done')], plugins: [[policy]] })
const { agent } = await harness.createAgent()
await turns(10)
const [record] = await recordsOf(() => turns(1))

const results = Object.fromEntries(
  Object.keys(PAGES).map((name) => [name, { idle: [] as number[], busy: [] as number[] }]),
)
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, pages] of Object.entries(PAGES)) {
    const fiber = pages === undefined ? undefined : await harness.mount(inspector, { port: PORT })
    const readers = Array.from({ length: pages ?? 0 }, read)
    await Promise.all(readers.map(({ ready }) => ready))
    const before = performance.eventLoopUtilization()
    await sleep(IDLE_MS)
    results[name]?.idle.push(performance.eventLoopUtilization(before).utilization * 100)
    const from = performance.now()
    await turns(TURNS)
    results[name]?.busy.push((performance.now() - from) / TURNS)
    for (const { child } of readers) await kill(child)
    await fiber?.dispose()
  }
}
const table = new Table({ head: ['inspector', 'event loop when idle, %', 'turn of 5 barriers, ms', 'ratio'] })
const base = median(results['none']?.busy ?? [])
for (const [name, { idle, busy }] of Object.entries(results)) {
  table.push([
    name,
    median(idle).toFixed(3),
    `${median(busy).toFixed(2)} (${Math.min(...busy).toFixed(2)} to ${Math.max(...busy).toFixed(2)})`,
    (median(busy) / base).toFixed(3),
  ])
}
console.log(table.toString())
const recorder = new Recorder(harness.ctx.checkpoints)
const from = performance.now()
for (let index = 0; index < RECORDS; index += 1) recorder.record(record as never)
console.log(`one record ${(((performance.now() - from) / RECORDS) * 1_000).toFixed(2)} µs`)
const stringifyFrom = performance.now()
const { length } = JSON.stringify(recorder.state())
console.log(`whole state ${(performance.now() - stringifyFrom).toFixed(2)} ms, ${Math.round(length / 1_024)} KiB`)
await harness.dispose()
rmSync(root, { recursive: true, force: true })

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    model.replace([[{ name: 'work' }]])
    await harness.say(agent, 'go')
  }
}

async function recordsOf(run: () => Promise<void>): Promise<unknown[]> {
  const records: unknown[] = []
  const stop = harness.ctx.checkpoints.observe((record) => records.push(record))
  await run()
  stop()
  return records
}

/** A page, as far as the server can tell. */
function read(): { child: ChildProcess; ready: Promise<unknown> } {
  const script = `fetch('http://127.0.0.1:${PORT}/api/events').then(async ({ body }) => { console.log('open'); for await (const chunk of body); })`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  return { child, ready: once(child.stdout, 'data') }
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill()
  await exited
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN
}
