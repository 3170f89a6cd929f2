/**
 * The picture of the overview: `npm run dashboards:picture`. Nine minutes of real agents with a real Prometheus, then
 * rendered to overview.png; the four prepared runs go to the folder given as argument, if any.
 */
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startPrometheus } from '../test/support/prometheus-server.ts'

const MINUTES = 9
const FIRST_PORT = 19_464
/** One shop of three processes for the picture, one of which has trouble; and the prepared runs, one process each. */
const PROCESSES = [
  { job: 'agents', instance: 'agent-1', scenario: 'healthy' },
  { job: 'agents', instance: 'agent-2', scenario: 'incident' },
  { job: 'agents', instance: 'agent-3', scenario: 'healthy' },
  { job: 'healthy', instance: 'agent-1', scenario: 'healthy' },
  { job: 'slow', instance: 'agent-1', scenario: 'slow' },
  { job: 'full', instance: 'agent-1', scenario: 'full' },
  { job: 'hung', instance: 'agent-1', scenario: 'hung' },
]

const [folder] = process.argv.slice(2)
const chosen = PROCESSES.filter(({ job }) => folder !== undefined || job === 'agents')
const agents = chosen.map(({ scenario }, index) =>
  spawn(process.execPath, [fileURLToPath(new URL('agent.ts', import.meta.url)), scenario], {
    // Traces give the exemplars their ids; nobody needs to receive them.
    env: {
      ...process.env,
      PORT: String(FIRST_PORT + index),
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_METRICS_EXPORTER: 'none',
    },
    stdio: 'ignore',
  }),
)
const server = await startPrometheus({
  targets: chosen.map(({ job, instance }, index) => ({ job, instance, port: FIRST_PORT + index })),
  ruleFiles: [fileURLToPath(new URL('checkpoint.rules.yaml', import.meta.url))],
  intervalSeconds: 5,
})
console.log(`Prometheus at ${server.url}, for ${MINUTES} minutes`)
try {
  await sleep(MINUTES * 60_000)
  const { render } = await import('./render.ts')
  const end = Date.now() / 1_000
  const shot = (job: string, path: string) => render({ url: server.url, job, start: end - MINUTES * 60, end, path })
  await shot('agents', fileURLToPath(new URL('overview.png', import.meta.url)))
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true })
    for (const job of ['healthy', 'slow', 'full', 'hung']) await shot(job, join(folder, `${job}.png`))
  }
  if (process.env['KEEP'] !== undefined) await sleep(Number(process.env['KEEP']) * 60_000)
} finally {
  for (const agent of agents) agent.kill('SIGTERM')
  await server.stop()
}
