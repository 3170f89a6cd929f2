/** A real Prometheus on loopback with a data folder of its own. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Whether Debian's `prometheus` package, server and promtool, is installed. */
export const PROMETHEUS_INSTALLED = ['prometheus', 'promtool'].every(
  (program) => spawnSync(program, ['--version']).status === 0,
)

/** What to scrape, and how. */
export interface PrometheusOptions {
  /** One scrape job each; `instance` stands in for the address. */
  readonly targets: readonly { readonly job: string; readonly port: number; readonly instance?: string }[]
  /** Rule files, absolute paths. */
  readonly ruleFiles?: readonly string[]
  /** Scrape and evaluation interval. */
  readonly intervalSeconds?: number
}

/** One series of an answer. */
export interface Result {
  readonly metric: Readonly<Record<string, string>>
  /** Time in seconds and value as text: one pair of an instant query, many of a range query. */
  readonly value?: readonly [number, string]
  readonly values?: readonly (readonly [number, string])[]
}

/** The HTTP API of a Prometheus server, as far as dashboards use it. */
export class PrometheusApi {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  query(query: string, time = Date.now() / 1_000): Promise<readonly Result[]> {
    return this.#results('query', { query, time: String(time) })
  }

  queryRange(query: string, start: number, end: number, step: number): Promise<readonly Result[]> {
    return this.#results('query_range', { query, start: String(start), end: String(end), step: String(step) })
  }

  /** Exemplars of every series that the query reads, flat. */
  async exemplars(query: string, start: number, end: number): Promise<readonly Exemplar[]> {
    const found = (await this.get('query_exemplars', { query, start: String(start), end: String(end) })) as readonly {
      exemplars: Exemplar[]
    }[]
    return found.flatMap(({ exemplars }) => exemplars)
  }

  /** `data` of one API call. */
  async get(path: string, parameters: Record<string, string> = {}): Promise<unknown> {
    // Posted, because a query can be longer than an address may be.
    const posts = path.startsWith('query')
    const search = new URLSearchParams(parameters)
    const response = posts
      ? await fetch(`${this.url}/api/v1/${path}`, { method: 'POST', body: search })
      : await fetch(`${this.url}/api/v1/${path}?${search.toString()}`)
    const { status, data, error } = (await response.json()) as { status: string; data?: unknown; error?: string }
    if (status !== 'success') throw new Error(`${error}: ${parameters['query']}`)
    return data
  }

  async #results(path: string, parameters: Record<string, string>): Promise<readonly Result[]> {
    return ((await this.get(path, parameters)) as { result: readonly Result[] }).result
  }
}

/** A measured value that names its trace. */
export interface Exemplar {
  readonly labels: Readonly<Record<string, string>>
  readonly value: string
  readonly timestamp: number
}

/** A server that this process started. */
export interface PrometheusServer extends PrometheusApi {
  /** Stop it and remove its data. */
  stop(): Promise<void>
}

/** Start a server and wait until it answers. */
export async function startPrometheus({
  targets,
  ruleFiles = [],
  intervalSeconds = 1,
}: PrometheusOptions): Promise<PrometheusServer> {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-prometheus-'))
  const interval = `${intervalSeconds}s`
  const config = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: ruleFiles,
    scrape_configs: [...new Set(targets.map(({ job }) => job))].map((name) => ({
      job_name: name,
      static_configs: targets
        .filter(({ job }) => job === name)
        .map(({ port, instance }) => ({
          targets: [`127.0.0.1:${port}`],
          labels: instance === undefined ? {} : { instance },
        })),
    })),
  }
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const port = await unusedPort()
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage',
      '--log.level=error',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  const api = new PrometheusApi(`http://127.0.0.1:${port}`)
  await ready(api.url, child)
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    }
    rmSync(folder, { recursive: true, force: true })
  }
  return Object.assign(api, { stop })
}

const READY_MS = 20_000
const RETRY_MS = 100

async function ready(url: string, child: ChildProcess): Promise<void> {
  for (const end = Date.now() + READY_MS; Date.now() < end;) {
    if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}`)
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  child.kill('SIGKILL')
  throw new Error(`prometheus did not get ready within ${READY_MS} ms`)
}

async function unusedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
