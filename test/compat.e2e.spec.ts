/** The packed policy on every host set that the README names: the same records, spans and metrics on each. */
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as sc from '../src/semconv.ts'
import { HOST_SETS, type CompatHost } from './support/compat-hosts.ts'
import type { CompatReport } from './support/compat-scenario.ts'
import { installHost } from './support/dsh-cli-hosts.ts'
import { packProject } from './support/dsh-cli-pack.ts'
import { ROOT, run, succeed } from './support/dsh-cli-process.ts'
import { requirement } from './support/require.ts'

// Each process has a limit of its own, with a message that says more than the runner's.
vi.setConfig({ testTimeout: 150_000 })

const RECORDS = [
  '1.1 step: dispatched, durable',
  '1.1 request: dispatched, durable',
  '1.1 tool: dispatched, durable',
  '1.2 step: dispatched, durable',
  '1.2 request: dispatched, durable',
  '1.2 turn: dispatched, durable',
  '2.1 step: dispatched, durable',
  '2.1 request: dispatched, durable',
  '2.1 tool: rejected, rejected, ENOSPC',
  '2.2 step: dispatched, durable',
  '2.2 request: dispatched, durable',
  '2.2 turn: dispatched, durable',
  '3.1 step: dispatched, durable',
  '3.1 request: dispatched, durable',
  '3.1 tool: aborted, pending',
  '3.1 turn: dispatched, durable',
  '4.1 step: dispatched, durable',
  '4.1 request: dispatched, durable',
  '4.1 tool: dispatched, durable',
  '4.2 step: dispatched, durable',
  '4.2 request: dispatched, durable',
  '4.2 turn: dispatched, durable',
  '-- resumed',
  'recovered crashed: unknown',
  '5.1 step: dispatched, durable',
  '5.1 request: dispatched, durable',
  '5.1 turn: dispatched, durable',
]

describe.each(HOST_SETS)('on $name', async (set) => {
  const host = await installHost(set)
  const folder = 'folder' in host ? host.folder : undefined

  test.skipIf(!requirement('missing' in host ? host.missing : set.name, folder !== undefined))(
    '[D10] a tool turn, a rejection, an abort and a recovery give the same records',
    async () => {
      expect(await runScenario(folder ?? '', set)).toEqual({
        releases: set.releases,
        files: set.backend === undefined ? ['.jsonl'] : ['.db'],
        records: RECORDS,
        bodies: 2,
        requests: 7,
        results: [
          'plain: ok',
          'turn 1: completed',
          'rejected: Error: disk full',
          'turn 2: completed',
          'aborted: ABORTED_BEFORE_DISPATCH',
          'turn 3: aborted',
          'crashed: ok',
          'turn 4: completed',
        ],
        spans: {
          [sc.SPAN_TURN]: 5,
          [sc.SPAN_BARRIER.request]: 8,
          [sc.SPAN_BARRIER.step]: 8,
          [sc.SPAN_BARRIER.tool]: 4,
          [sc.SPAN_BARRIER.turn]: 5,
        },
        metrics: Object.keys(sc.INSTRUMENTS).toSorted(),
        warnings: ['checkpoint tool of tool work (session compat, turn 2, step 1) failed: ENOSPC'],
        unhandled: [],
      })
    },
  )

  test.skipIf(folder === undefined)("type-checks a strict consumer on the host's own types", async () => {
    expect(await checkTypes(folder ?? '', set)).toBe('')
  })
})

/** A folder of its own whose packages are the host's, and ours beside them. */
async function createProject(host: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-compat-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const ours = join(folder, 'node_modules/dsh-checkpoint-otel')
  await mkdir(ours, { recursive: true })
  await linkPackages(join(host, 'node_modules'), join(folder, 'node_modules'))
  const args = ['-xzf', await packProject(), '--strip-components=1', '-C', ours]
  await succeed({ what: 'tar', command: 'tar', args, cwd: folder, limitMs: 30_000 })
  return folder
}

async function runScenario(host: string, { name, backend }: CompatHost): Promise<CompatReport> {
  const folder = await createProject(host)
  if (backend !== undefined) await replaceBackend(folder, join(ROOT, 'test/support', backend))
  await cp(join(ROOT, 'test/support/compat-scenario.ts'), join(folder, 'scenario.ts'))
  const { stdout } = await succeed({
    what: `the scenario on ${name}`,
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', 'scenario.ts'],
    cwd: folder,
    limitMs: 60_000,
  })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as CompatReport
}

/** What the compiler says of a strict consumer on the host's types; nothing when it is content. */
async function checkTypes(host: string, { name }: CompatHost): Promise<string> {
  const folder = await createProject(host)
  await cp(join(ROOT, 'test/support/compat-consumer.ts.txt'), join(folder, 'consumer.ts'))
  // Upstream's own declarations lack the extensions that Node's resolution asks for.
  const resolution = name.includes('upstream')
    ? { module: 'esnext', moduleResolution: 'bundler' }
    : { module: 'nodenext' }
  const compilerOptions = { strict: true, target: 'es2023', noEmit: true, types: [], skipLibCheck: true, ...resolution }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
  const args = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]
  const { stdout } = await run({ what: 'tsc', command: process.execPath, args, cwd: folder, limitMs: 60_000 })
  return stdout
}

async function linkPackages(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const name of await readdir(from)) {
    if (name.startsWith('@')) await linkPackages(join(from, name), join(to, name))
    else if (!name.startsWith('.')) await symlink(join(from, name), join(to, name))
  }
}

async function replaceBackend(folder: string, file: string): Promise<void> {
  const backend = join(folder, 'node_modules/@deepseek-ai/dsh-session-persistence-jsonl')
  await rm(backend)
  await mkdir(backend)
  await cp(file, join(backend, 'index.mjs'))
  await writeFile(
    join(backend, 'package.json'),
    JSON.stringify({ name: 'backend', type: 'module', exports: './index.mjs' }),
  )
}
