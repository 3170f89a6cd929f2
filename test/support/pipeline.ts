/** The programs of the pipeline tests: a collector on the shipped file, and two ages of Prometheus. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { PrometheusApi } from './prometheus-server.ts'
import { freePort } from './scrape.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Paths of the built programs; they need not exist. */
const built = Object.fromEntries(
  spawnSync('bash', [join(ROOT, 'test/collector/build.sh'), '--print'], { encoding: 'utf8' })
    .stdout.trim()
    .split('\n')
    .map((line) => line.split('=') as [string, string]),
)
export const COLLECTOR = built['collector'] ?? ''
/** A current Prometheus, for its OTLP intake. */
export const PROMETHEUS = built['prometheus'] ?? ''
export const BUILT = existsSync(COLLECTOR) && existsSync(PROMETHEUS)
export const CONFIG = join(ROOT, 'otel-collector.yaml')
export const TAIL_SAMPLING = join(ROOT, 'otel-collector.tail-sampling.yaml')

/** A running collector. */
export interface Collector {
  /** Base URL of its OTLP/HTTP receiver. */
  readonly otlp: string
  /** Base URL of its OTLP/gRPC receiver. */
  readonly grpc: string
  /** Port of its Prometheus exporter. */
  readonly port: number
  readonly telemetryPort: number
  readonly healthUrl: string
  /** Everything it wrote, over restarts. */
  readonly log: () => string
  readonly kill: () => Promise<void>
  /** Start it again on the same ports. */
  readonly start: () => Promise<void>
}

/** Start the collector on the shipped files; `overrides` are single settings, `a::b: value`. It ends with the test. */
export async function startCollector(
  options: {
    readonly files?: readonly string[]
    readonly overrides?: readonly string[]
    readonly traces?: string
  } = {},
): Promise<Collector> {
  const [grpc, http, port, health, telemetryPort] = await ports(5)
  const files = [CONFIG, ...(options.files ?? [])]
  const args = [...files, ...(options.overrides ?? []).map((each) => `yaml:${each}`)].flatMap((each) => [
    '--config',
    each,
  ])
  const env = {
    ...process.env,
    COLLECTOR_OTLP_GRPC_ENDPOINT: `127.0.0.1:${grpc}`,
    COLLECTOR_OTLP_HTTP_ENDPOINT: `127.0.0.1:${http}`,
    COLLECTOR_PROMETHEUS_ENDPOINT: `127.0.0.1:${port}`,
    COLLECTOR_HEALTH_ENDPOINT: `127.0.0.1:${health}`,
    COLLECTOR_TELEMETRY_PORT: String(telemetryPort),
    ...(options.traces === undefined ? {} : { COLLECTOR_TRACES_ENDPOINT: options.traces }),
  }
  let log = ''
  let child: ChildProcess | undefined
  const healthUrl = `http://127.0.0.1:${health}/`
  const collector: Collector = {
    otlp: `http://127.0.0.1:${http}`,
    grpc: `http://127.0.0.1:${grpc}`,
    port: port as number,
    telemetryPort: telemetryPort as number,
    healthUrl,
    log: () => log,
    kill: async () => {
      await end(child, 'SIGKILL')
      child = undefined
    },
    start: async () => {
      child = spawn(COLLECTOR, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
      for (const stream of [child.stdout, child.stderr])
        stream?.setEncoding('utf8').on('data', (text: string) => (log += text))
      await ready(healthUrl, child, () => log)
    },
  }
  onTestFinished(() => collector.kill())
  await collector.start()
  return collector
}

/** What one Prometheus scrapes. */
export interface Scrape {
  readonly job: string
  readonly port: number
  /** Keep the job and instance of the samples themselves. */
  readonly honorLabels?: boolean
}

/** Start a Prometheus: the distribution's to scrape, or the built one to be written to. It ends with the test. */
export async function startPrometheus(
  program: string,
  scrapes: readonly Scrape[],
  flags: readonly string[] = [],
): Promise<PrometheusApi> {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-pipeline-'))
  const [port] = await ports(1)
  const config = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms' },
    scrape_configs: scrapes.map(({ job, port: target, honorLabels = false }) => ({
      job_name: job,
      honor_labels: honorLabels,
      static_configs: [{ targets: [`127.0.0.1:${target}`] }],
    })),
  }
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  let log = ''
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage',
      ...flags,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (log += text))
  onTestFinished(async () => {
    await end(child, 'SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  const api = new PrometheusApi(`http://127.0.0.1:${port}`)
  await ready(`${api.url}/-/ready`, child, () => log)
  return api
}

/** Sends what it receives on: metrics to several places, so that they see the same run. It ends with the test. */
export async function startTee(
  traces: string,
  metrics: readonly string[],
): Promise<{ readonly endpoint: string; failures: number }> {
  const [port] = await ports(1)
  const tee = { endpoint: `http://127.0.0.1:${port}`, failures: 0 }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const targets = request.url === '/v1/traces' ? [`${traces}/v1/traces`] : metrics
      const headers = { 'content-type': String(request.headers['content-type']) }
      const sent = targets.map(async (url) => {
        const answer = await fetch(url, { method: 'POST', headers, body: Buffer.concat(chunks) })
        if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
      })
      Promise.all(sent).then(
        () => response.writeHead(200).end(),
        () => {
          tee.failures += 1
          response.writeHead(503).end()
        },
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return tee
}

/** Collects what a collector exports as OTLP/JSON; each request's body as text. It ends with the test. */
export async function startBackend(): Promise<{ readonly endpoint: string; readonly bodies: string[] }> {
  const [port] = await ports(1)
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      bodies.push((request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString())
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { endpoint: `http://127.0.0.1:${port}`, bodies }
}

async function ports(count: number): Promise<number[]> {
  const found: number[] = []
  // One after another, and never one twice.
  while (found.length < count) {
    const port = await freePort()
    if (!found.includes(port)) found.push(port)
  }
  return found
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await exited
}

const READY_MS = 20_000
const RETRY_MS = 50

async function ready(url: string, child: ChildProcess, log: () => string): Promise<void> {
  for (const until = Date.now() + READY_MS; Date.now() < until;) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}: ${log()}`)
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  await end(child, 'SIGKILL')
  throw new Error(`${child.spawnfile} did not get ready within ${READY_MS} ms: ${log()}`)
}
