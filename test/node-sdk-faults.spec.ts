/** A collector that is away, wrong or silent: the agent does not notice, and the process ends as its host wants. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import { createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, storageError, summary, tempFolder } from './support/app.ts'
import { readLog } from './support/log.ts'
import { createOtlpReceiver, type Answer } from './support/otlp.ts'

const NODE = join(import.meta.dirname, '../node_modules/.bin/node')
/** Nothing listens there: the port is reserved. */
const CLOSED_PORT = 'http://127.0.0.1:1'
const TURNS = 40
const SHUTDOWN_MS = 500

/** 200 barriers, of which every eleventh flush fails; what became of them, one line each. */
async function barriers(sdkConfig?: object) {
  const answers = Array.from({ length: TURNS }, () => [[{ name: 'write' }], 'done'] as const).flat()
  const app = await createApp({
    model: new ScriptedModel(answers),
    tools: [createTool('write', () => 'ok')],
    plugins: [[policy, { turnBoundary: false }], ...(sdkConfig === undefined ? [] : [[nodeSdk, sdkConfig] as const])],
  })
  app.flushes.on = () => {
    if (app.flushes.count % 11 === 0) throw storageError('ENOSPC')
  }
  const { agent } = await app.createAgent()
  for (let turn = 0; turn < TURNS * 2 && app.barriers().length < 200; turn += 1) await app.say(agent, 'hi')
  const from = performance.now()
  await app.dispose()
  return {
    lines: summary(app.barriers()),
    logs: app.logs.filter((line) => line.startsWith('OpenTelemetry')),
    unloadMs: performance.now() - from,
  }
}

test.each<[string, Answer | 'refuse']>([
  ['refuses', 'refuse'],
  ['answers 400', 400],
  ['answers 503', 503],
  ['hangs', 'hang'],
])('[D16] 200 barriers end as without telemetry while the endpoint %s', async (_what, answer) => {
  const receiver = await createOtlpReceiver(answer === 'refuse' ? 'hang' : answer)
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '20')
  onTestFinished(() => void vi.unstubAllEnvs())
  const without = await barriers()
  const { lines, logs, unloadMs } = await barriers({
    endpoint: answer === 'refuse' ? CLOSED_PORT : receiver.endpoint,
    metricsIntervalMs: 20,
    shutdownTimeoutMs: SHUTDOWN_MS,
  })
  expect(lines.length).toBeGreaterThanOrEqual(200)
  expect(lines).toEqual(without.lines)
  expect(lines.filter((line) => line.includes(':rejected:')).length).toBeGreaterThan(10)
  // One of errors and one of warnings a minute.
  expect(logs.length).toBeGreaterThan(0)
  expect(logs.length).toBeLessThanOrEqual(2)
  // The rest of the application unloads in that time as well.
  expect(unloadMs).toBeLessThan(SHUTDOWN_MS + 1_000)
  expect(receiver.requests.length > 0).toBe(answer !== 'refuse')
})

/** Run the child; `onLine` may send signals. */
async function runChild(
  mode: string,
  config: object,
  onLine: (line: string, kill: () => void) => void = () => {},
  preload?: string,
) {
  const root = tempFolder()
  const args = [
    ...(preload === undefined ? [] : ['--import', preload]),
    join(import.meta.dirname, 'support/telemetry-child.ts'),
    root,
    mode,
  ]
  const child = spawn(NODE, ['--unhandled-rejections=strict', ...args, JSON.stringify(config)], {
    env: { ...process.env, OTEL_BSP_SCHEDULE_DELAY: '20' },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  let saidAt = 0
  let unloadedAt = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    for (const line of parts) {
      lines.push(line)
      if (line === 'said') saidAt = performance.now()
      if (line.startsWith('unloaded')) unloadedAt = performance.now()
      onLine(line, () => child.kill('SIGTERM'))
    }
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, lines, errors, root, lingeredMs: performance.now() - saidAt, endedMs: performance.now() - unloadedAt }
}

test.each<[string, string | undefined]>([
  ['is away', CLOSED_PORT],
  ['never answers', undefined],
])('[D15] SIGTERM ends the process as its host wants while the endpoint %s', async (_what, endpoint) => {
  const receiver = await createOtlpReceiver('hang')
  const config = { endpoint: endpoint ?? receiver.endpoint, metricsIntervalMs: 50, shutdownTimeoutMs: SHUTDOWN_MS }
  const { code, lines, errors, root, endedMs } = await runChild(
    'signal',
    config,
    (line, kill) => line === 'ready' && kill(),
  )
  // What the plugin says itself is heard, for this host prints no log lines; nothing else may be there.
  expect(errors.split('\n').filter((line) => line !== '' && !/CheckpointWarning|trace-warnings/.test(line))).toEqual([])
  expect(code).toBe(7)
  const unloaded = Number(/unloaded (\d+)/.exec(lines.join('\n'))?.[1])
  expect(unloaded).toBeLessThan(SHUTDOWN_MS + 1_000)
  // A retry that was scheduled before the unload may come after it.
  expect(endedMs).toBeLessThan(5_000)
  expect(JSON.stringify(readLog(root))).toContain('last answer')
})

test('[D15] a second SIGTERM still ends the process', async () => {
  const receiver = await createOtlpReceiver('hang')
  const config = { endpoint: receiver.endpoint, shutdownTimeoutMs: 60_000 }
  const { code, lines } = await runChild(
    'signal',
    config,
    (line, kill) => (line === 'ready' || line === 'flushed') && kill(),
  )
  expect(code).toBe(9)
  expect(lines.filter((line) => line.startsWith('unloaded'))).toEqual([])
})

test.each<[string, string | undefined, object]>([
  ['is away', CLOSED_PORT, { exportTimeoutMs: 1_000 }],
  ['never answers', undefined, { exportTimeoutMs: 1_000 }],
  // With the default limit of ten seconds there would always be an export of metrics under way.
  ['never answers to metrics', undefined, { signals: ['metrics'] }],
])('[D15] a script that unloads nothing ends by itself while the endpoint %s', async (_what, endpoint, more) => {
  const receiver = await createOtlpReceiver('hang')
  const config = { endpoint: endpoint ?? receiver.endpoint, metricsIntervalMs: 1_000, ...more }
  const { code, errors, lingeredMs } = await runChild('plain', config)
  expect(errors).toBe('')
  expect(code).toBe(0)
  // An export under way may end first, which its limit bounds.
  expect(lingeredMs).toBeLessThan(5_000)
})

test('on an API older than the SDK needs it says so by name and the agent works', async () => {
  const preload = join(import.meta.dirname, 'support/old-api.ts')
  const { code, lines, errors } = await runChild('plain', { endpoint: CLOSED_PORT }, undefined, preload)
  expect(errors).toBe('')
  expect(code).toBe(0)
  expect(lines).toContain('said')
  expect(lines.filter((line) => line.startsWith('log'))).toEqual([
    'log checkpoint-node-sdk needs @opentelemetry/api 1.10 or newer and found 1.9.1: no telemetry is exported',
  ])
})
