/**
 * A busy agent process with a scripted model, to look at the dashboards with: `node dashboards/agent.ts SCENARIO`.
 *
 * Everything but the model and the fault is real: session store, agent loop, JSONL files with fsync. It serves /metrics
 * on PORT (9464), and sends OTLP too where OTEL_EXPORTER_OTLP_ENDPOINT is set. It runs until it is stopped.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import * as policy from '../src/index.ts'
import * as prometheus from '../src/prometheus.ts'
import { createHarness, createTool, ScriptedModel, textChunks } from '../src/testing/harness.ts'

type Fault = 'none' | 'slow' | 'full' | 'hung'

/** What the storage does from which minute on. */
const SCENARIOS: Readonly<Record<string, readonly (readonly [minute: number, fault: Fault])[]>> = {
  healthy: [[0, 'none']],
  slow: [
    [0, 'none'],
    [3, 'slow'],
  ],
  full: [
    [0, 'none'],
    [3, 'full'],
  ],
  hung: [
    [0, 'none'],
    [3, 'hung'],
  ],
  incident: [
    [0, 'none'],
    [3, 'slow'],
    [4.5, 'full'],
    [5.25, 'none'],
  ],
}

const [scenario = 'healthy'] = process.argv.slice(2)
const phases = SCENARIOS[scenario]
if (phases === undefined)
  throw new Error(`scenario must be one of ${Object.keys(SCENARIOS).join(', ')}, got ${scenario}`)
const { PORT = '9464', HOST = '127.0.0.1', AGENTS = '2', OTEL_EXPORTER_OTLP_ENDPOINT } = process.env

const started = Date.now()
const faultNow = (): Fault => phases.findLast(([minute]) => Date.now() - started >= minute * 60_000)?.[1] ?? 'none'
const between = (low: number, high: number) => low + Math.random() * (high - low)

const storage = {
  name: 'storage',
  apply(ctx: Context) {
    ctx.on('session/flush', async () => {
      switch (faultNow()) {
        case 'none':
          return
        case 'slow':
          return sleep(between(150, 700))
        case 'full':
          throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
        case 'hung':
          return new Promise<void>(() => {})
      }
    })
  },
}

const root = mkdtempSync(join(tmpdir(), 'dsh-agent-'))
const model = new ScriptedModel()
const harness = await createHarness({
  root,
  model,
  tools: [
    createTool('read', () => sleep(between(10, 80)), { parallel: true }),
    createTool('write', () => sleep(between(20, 200))),
  ],
  plugins: [
    [storage],
    [policy, {}],
    [prometheus, { port: Number(PORT), host: HOST, allowRemote: HOST !== '127.0.0.1' }],
    // Imported only where it is used: the SDK is heavy.
    ...(OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? [] : [[await import('../src/node-sdk.ts')] as const]),
  ],
})

// A hung flush holds no handle: without this the process would end where it should be seen to hang.
setInterval(() => {}, 60_000)
const stopped = new AbortController()
const stop = async () => {
  stopped.abort()
  // A hung flush must not keep the process from ending.
  await Promise.race([harness.dispose(), sleep(2_000)])
  rmSync(root, { recursive: true, force: true })
  process.exit(0)
}
process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())

async function work(): Promise<void> {
  const { agent } = await harness.createAgent()
  while (!stopped.signal.aborted) {
    model.push([{ name: 'read' }, { name: 'read' }, { name: 'read' }], [{ name: 'write' }], async function* answer() {
      await sleep(between(100, 600))
      yield* textChunks('done')
    })
    await harness.say(agent, 'go on')
    await sleep(between(200, 1_500))
  }
}
await Promise.all(Array.from({ length: Number(AGENTS) }, work))
