/** One soak: load, observer, scrape and heap put together, and what does not agree at the end. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as nodeSdk from '../../src/node-sdk.ts'
import * as policy from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import coalesced from '../../src/strategies/coalesced.ts'
import pipelined from '../../src/strategies/pipelined.ts'
import { createHarness, type Harness } from '../../src/testing/harness.ts'
import { within } from '../../src/testing/wait.ts'
import { SoakLoad } from './soak-load.ts'
import { noCounts, observerPlugin, type Counts } from './soak-observer.ts'
import { disagreements, fromRecords, fromScrape, isFlat } from './soak-verdict.ts'

/** How a soak runs. */
export interface SoakOptions {
  readonly minutes: number
  readonly agents: number
  readonly seed: number
  readonly onSample?: (line: string) => void
}

/** What a soak saw. */
export interface SoakReport {
  readonly observed: Counts
  readonly scraped: Counts
  readonly heapMiB: readonly number[]
  readonly turns: number
  readonly agents: number
  readonly injected: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

const SAMPLES = 40
const SWAP_EVERY = 3
const DRAIN_LIMIT_MS = 60_000
const MIB = 1_048_576

/** Run it. @throws when heap cannot be measured: start node with `--expose-gc`. */
export async function soak({ minutes, agents, seed, onSample }: SoakOptions): Promise<SoakReport> {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error('soak: start node with --expose-gc')
  const root = await mkdtemp(join(tmpdir(), 'dsh-soak-'))
  const observed = noCounts()
  const recorded = noCounts()
  const load = new SoakLoad(seed, root, observed)
  const port = await freePort()
  const harness = await createHarness({
    root,
    compression: 'none',
    model: load.model,
    tools: load.tools,
    plugins: [
      [observerPlugin(observed)],
      [load.faults],
      [policy, {}],
      [prometheus, { port }],
      // Nobody listens there: spans and metrics pile up as far as the exporter lets them.
      [
        nodeSdk,
        {
          endpoint: `http://127.0.0.1:${await freePort()}`,
          signals: ['traces', 'metrics'],
          metricsIntervalMs: 1_000,
          exportTimeoutMs: 500,
        },
      ],
    ],
  })
  const violations: string[] = []
  const onRejection = (error: unknown) => void violations.push(`unhandled rejection: ${String(error)}`)
  process.on('unhandledRejection', onRejection)
  try {
    load.harness = harness
    harness.ctx.checkpoints.observe((record) => fromRecords(recorded, record))
    const running = load.run(agents)
    // Awaited at the end; a failure before that is no unhandled rejection.
    running.catch(() => {})
    const heapMiB: number[] = []
    const strategies = rotation(harness)
    const everyMs = (minutes * 60_000) / SAMPLES
    for (let sample = 1; sample <= SAMPLES; sample += 1) {
      await sleep(everyMs)
      if (sample % SWAP_EVERY === 0) await strategies.next()
      collect()
      heapMiB.push(process.memoryUsage().heapUsed / MIB)
      const { active, oldestAgeMs } = harness.ctx.checkpoints.state()
      onSample?.(
        `${String(sample).padStart(2)}/${SAMPLES}: heap ${heapMiB.at(-1)?.toFixed(1)} MiB, rss ${(process.memoryUsage.rss() / MIB).toFixed(0)} MiB, ` +
          `turns ${load.turns}, agents ${load.agents}, open ${Object.values(active).reduce((sum, count) => sum + count)}, oldest ${Math.round(oldestAgeMs)} ms`,
      )
    }
    load.stop()
    await within(DRAIN_LIMIT_MS, 'the last turns', running)
    while (harness.ctx.checkpoints.open().length > 0) await sleep(10)
    const scraped = fromScrape(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())
    violations.push(
      ...disagreements('ctx.checkpoints', observed, recorded),
      ...disagreements('the scrape', observed, scraped.counts),
      ...scraped.violations,
    )
    const growth = isFlat(heapMiB)
    if (growth !== undefined) violations.push(growth)
    return {
      observed,
      scraped: scraped.counts,
      heapMiB,
      turns: load.turns,
      agents: load.agents,
      injected: load.injected,
      violations,
    }
  } finally {
    load.stop()
    await within(DRAIN_LIMIT_MS, 'the end of the application', harness.dispose())
    process.off('unhandledRejection', onRejection)
    await rm(root, { recursive: true, force: true })
  }
}

/** Swaps the strategy under load, for ever. */
async function* rotation(harness: Harness): AsyncGenerator<void> {
  for (;;) {
    for (const strategy of [coalesced, pipelined]) {
      const fiber = await harness.mount(strategy, {})
      yield
      await fiber.dispose()
    }
    yield
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => void server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => void server.close(resolve))
  return port
}
