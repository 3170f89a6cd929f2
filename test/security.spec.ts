import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { connect, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as inspector from '../src/inspector.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import * as prometheus from '../src/prometheus.ts'
import coalesced from '../src/strategies/coalesced.ts'
import { createTool, MODEL, PROVIDER, ScriptedModel, textChunks } from '../src/testing/harness.ts'
import { createApp, storageError, tempFolder, type App } from './support/app.ts'
import { CANARIES as C, canariesIn } from './support/canaries.ts'
import { runCli, scratch } from './support/cli.ts'
import { ask, freePort, OPENMETRICS } from './support/scrape.ts'
import { registerSdk } from './support/sdk.ts'

/** A collector that keeps whatever arrives. */
async function createSink(status = 200) {
  const received: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push(`${request.url} ${Buffer.concat(chunks).toString()}`)
      // A server may echo what it got.
      response.writeHead(status, { 'content-type': 'text/plain' }).end(JSON.stringify(request.headers))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { received, host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const boom = (word: string) =>
  Object.assign(storageError('ENOSPC'), { message: `ENOSPC: ${word}, write '/home/${C.path}/session.jsonl'` })

/** What a user, a model, a tool and a disk may say, each with a canary in it. */
async function live(app: App): Promise<void> {
  const { agent } = await app.createAgent('agent-1')
  const call = (name: string) => ({ name, args: { command: C.reasoningArgs } })
  app.model.replace([
    [call('write'), call('broken')],
    [call('careful'), call('careful')],
    [call('no_such_tool')],
    () => textChunks(C.answer),
  ])
  await app.say(agent, `${C.prompt}, please`)
  app.model.replace([
    () => {
      throw new Error(C.adapterError)
    },
  ])
  await app.say(agent, C.prompt)
  // The disk fails: the model is told in the words of the disk, and nobody else.
  app.model.replace([[call('write')], 'done'])
  app.flushes.on = () =>
    app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')
      ? Promise.reject(boom(C.flushError))
      : undefined
  await app.say(agent, C.prompt)
  app.flushes.on = () => Promise.reject(boom(C.flushError))
  await app.say(agent, C.prompt)
  app.flushes.on = undefined
  const request = {
    provider: PROVIDER,
    model: MODEL,
    messages: [],
    systemPrompt: C.systemPrompt,
    sessionId: agent.session.id,
    purpose: 'session-title',
  }
  for await (const chunk of app.ctx.llm.stream(request as never)) void chunk
  agent.session.append(
    'session/title' as 'turn/start',
    { title: C.title, messageSeqs: [], source: { kind: 'fallback' } } as never,
  )
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
}

const TOOLS = [
  createTool('write', () => C.result),
  createTool('broken', () => {
    throw new Error(C.bodyError)
  }),
  // What says whether a call may run beside others sees its arguments.
  Object.assign(
    createTool('careful', () => 'ok'),
    {
      isConcurrencySafe: (args: { command?: string }) => {
        throw new Error(`${C.parallelCheck}: ${args.command}`)
      },
    },
  ),
]

/** Everything that is mounted in production, with secrets in its configuration. */
async function createProduction(status = 200) {
  const sink = await createSink(status)
  const ports = { metrics: await freePort(), inspector: await freePort() }
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', `x-env=${C.envHeader}`)
  vi.stubEnv('OTEL_LOG_LEVEL', 'debug')
  vi.stubEnv('SOME_API_KEY', C.environment)
  onTestFinished(() => void vi.unstubAllEnvs())
  const warnings: string[] = []
  const hear = (warning: Error) => warnings.push(String(warning))
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  const root = join(tempFolder(), C.path)
  mkdirSync(root)
  const app = await createApp({
    root,
    model: new ScriptedModel(),
    tools: TOOLS,
    plugins: [
      [
        nodeSdk,
        {
          endpoint: `http://${C.endpointCredentials}:x@${sink.host}/`,
          protocol: 'http/json',
          headers: { authorization: `Bearer ${C.configHeader}` },
          metricsIntervalMs: 200,
          exportTimeoutMs: 1_000,
          shutdownTimeoutMs: 1_000,
        },
      ],
      [policy, { overdueMs: 1 }],
      [coalesced],
      [prometheus, { port: ports.metrics, token: C.metricsToken }],
      [inspector, { port: ports.inspector, token: C.inspectorToken }],
    ],
  })
  return { app, sink, ports, warnings }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

test('prompts, arguments, results, messages of errors, tokens and paths come out nowhere', async () => {
  const { app, sink, ports, warnings } = await createProduction()
  await live(app)
  expect(app.barriers().filter(({ errorType }) => errorType === 'ENOSPC').length).toBeGreaterThan(1)
  const answers = await Promise.all([
    ask(ports.metrics, { headers: bearer(C.metricsToken) }),
    ask(ports.metrics, { headers: { ...bearer(C.metricsToken), accept: OPENMETRICS } }),
    ask(ports.metrics, { headers: bearer('wrong') }),
    ...['/', '/api/state', '/no-such-page'].map((path) =>
      ask(ports.inspector, { path, headers: bearer(C.inspectorToken) }),
    ),
    ask(ports.inspector, { path: '/api/state', headers: bearer('wrong') }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200, 200, 404, 401])
  const stream = await firstOf(ports.inspector, '/api/events', bearer(C.inspectorToken))
  const records = JSON.stringify(app.records)
  await app.dispose()
  // Each surface did have something to show.
  const exported = sink.received.join('\n')
  expect(exported).toContain('checkpoint tool')
  expect(exported).toContain('dsh.checkpoint.rejections')
  expect(answers[4]?.body).toContain('"toolName":"write"')
  expect(stream).toContain('"toolName":"write"')
  expect(app.logs.join('\n')).toContain('failed: ENOSPC')
  const surfaces = {
    records,
    scrape: JSON.stringify(answers.slice(0, 3)),
    inspector: JSON.stringify(answers.slice(3)) + stream,
    exported,
    logs: app.logs.join('\n'),
    warnings: warnings.join('\n'),
  }
  expect(Object.entries(surfaces).map(([surface, text]) => [surface, canariesIn(text)])).toEqual(
    Object.keys(surfaces).map((surface) => [surface, []]),
  )
})

test('a collector that refuses and echoes what it got brings no secret into the log', async () => {
  const { app, sink } = await createProduction(400)
  await live(app)
  await vi.waitFor(() => expect(sink.received.length).toBeGreaterThan(0))
  await app.dispose()
  expect(app.logs.join('\n')).toMatch(/OpenTelemetry/)
  expect(canariesIn(app.logs.join('\n'))).toEqual([])
})

test('spans hold the documented ids and names, and nothing else that somebody said', async () => {
  const sdk = registerSdk()
  const app = await createApp({ model: new ScriptedModel(), tools: TOOLS, plugins: [[policy], [coalesced]] })
  await live(app)
  const spans = sdk.spans()
  expect(spans.length).toBeGreaterThan(10)
  expect(
    canariesIn(
      JSON.stringify(
        spans.map(({ name, attributes, events, status, links }) => ({ name, attributes, events, status, links })),
      ),
    ),
  ).toEqual([])
  expect(spans.flatMap(({ events }) => events)).toEqual([])
  expect(new Set(spans.map(({ status }) => status.message))).toEqual(new Set([undefined]))
  const texts = spans.flatMap(({ attributes }) =>
    Object.entries(attributes).filter(
      ([key, value]) => typeof value === 'string' && !key.startsWith('dsh.checkpoint.'),
    ),
  )
  expect([...new Set(texts.map(([key]) => key))].toSorted()).toEqual([
    'error.type',
    'gen_ai.conversation.id',
    'gen_ai.request.model',
    'gen_ai.tool.call.id',
    'gen_ai.tool.name',
    'session.id',
  ])
  for (const name of await sdk.names()) expect(canariesIn(JSON.stringify(await sdk.points(name)))).toEqual([])
})

test('zero config listens on loopback alone, for every endpoint', async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .filter((address) => address?.internal === false && address.family === 'IPv4')
  const ports = { metrics: await freePort(), inspector: await freePort() }
  const app = await createApp({
    plugins: [[policy], [prometheus, { port: ports.metrics }], [inspector, { port: ports.inspector }]],
  })
  await vi.waitFor(() => expect(app.logs.filter((line) => line.includes(' at http://127.0.0.1:'))).toHaveLength(2))
  for (const port of Object.values(ports)) {
    expect(await reaches('127.0.0.1', port)).toBe(true)
    for (const address of outside) expect(await reaches(address?.address ?? '', port)).toBe(false)
  }
})

test.each([prometheus, inspector])(
  '$name does not load beyond loopback without a token or a word, and a refused token is not shown',
  async (plugin) => {
    const app = await createApp()
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.org']) {
      await expect(app.mount({ ...plugin }, { host })).rejects.toThrow(
        'host must be a loopback address unless token is set',
      )
    }
    const refused = await app.mount({ ...plugin }, { token: `${C.metricsToken} ` }).catch(String)
    expect(refused).toContain('token must be')
    expect(canariesIn(`${refused as string}${app.logs.join()}`)).toEqual([])
  },
)

test('the commands print no word of the logs and settings they read', async () => {
  const app = await createApp({ model: new ScriptedModel(), tools: TOOLS })
  await live(app)
  await app.dispose()
  const folder = scratch()
  const headers = { authorization: `Bearer ${C.configHeader}` }
  const rows = [
    { id: 'policy', name: 'dsh-checkpoint-otel' },
    {
      id: 'sdk',
      name: 'dsh-checkpoint-otel/node-sdk',
      config: { headers, endpoint: `http://${C.endpointCredentials}:x@127.0.0.1:4318/` },
    },
    { id: 'metrics', name: 'dsh-checkpoint-otel/prometheus', config: { token: C.metricsToken } },
  ]
  writeFileSync(join(folder, 'cordis.yml'), JSON.stringify(rows))
  writeFileSync(join(folder, 'package.json'), '{}')
  const env = { DSH_HOME: scratch(), OTEL_EXPORTER_OTLP_HEADERS: `x-env=${C.envHeader}`, SOME_API_KEY: C.environment }
  const doctor = ['doctor', '--dir', folder, '--config', join(folder, 'cordis.yml'), '--no-write']
  const resume = ['demo', '--dir', scratch(), '--resume', logOf(app.root)]
  const tune = ['tune', '--max-turns', '1', '--seconds', '1', app.root]
  const calls = [doctor, [...doctor, '--json'], resume, [...resume, '--json'], [...tune, '--json']]
  const ran = await Promise.all(calls.map((args) => runCli(args, { env })))
  for (const { stdout, stderr } of ran) {
    expect((stdout + stderr).length).toBeGreaterThan(50)
    expect(canariesIn(stdout + stderr)).toEqual([])
  }
}, 60_000)

test('a name that a model makes up stays on one line of the log, and the line is cut', async () => {
  const app = await createApp({ model: new ScriptedModel(), plugins: [[policy]] })
  const { agent } = await app.createAgent()
  app.model.replace([[{ name: `no\n\u2028\u001b[31msuch ${'x'.repeat(100_000)}` }], 'done'])
  app.flushes.on = () =>
    app.ctx.checkpoints.open().some(({ boundary }) => boundary === 'tool')
      ? Promise.reject(storageError('EIO'))
      : undefined
  await app.say(agent, 'hi')
  const [line = ''] = app.logs.filter((text) => text.includes('checkpoint tool of tool no'))
  expect(line.length).toBeGreaterThan(100)
  expect(line.length).toBeLessThanOrEqual(1_000)
  expect(line).not.toMatch(/[\p{Cc}\p{Zl}]/u)
})

test('every bound of SECURITY.md is in the file that it names, with that value', () => {
  const text = readFileSync(new URL('../SECURITY.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/\| `(src\/[^`]+)` `([^`]+)` \|$/gm)]
  expect(rows.length).toBeGreaterThan(15)
  const missing = rows.filter(
    ([, file = '', code = '']) => !readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').includes(code),
  )
  expect(missing.map(([row]) => row)).toEqual([])
})

function logOf(root: string): string {
  const [file = ''] = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'))
  return join(root, file)
}

/** The first message of a stream. */
async function firstOf(port: number, path: string, headers: Record<string, string>): Promise<string> {
  const outgoing = request({ host: '127.0.0.1', port, path, headers, agent: false }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    if (text.includes('\n\n')) break
  }
  return text
}

function reaches(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 }, () => resolve(true))
    socket.on('error', () => resolve(false)).on('timeout', () => resolve(false))
    onTestFinished(() => void socket.destroy())
  })
}
