/** The tarball as a user gets it: installed, loaded, type-checked and linted outside the repository. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { HOST_SETS } from './support/compat-hosts.ts'
import { installHost } from './support/dsh-cli-hosts.ts'
import { packProject } from './support/dsh-cli-pack.ts'
import { ROOT, run, succeed, type Finished } from './support/dsh-cli-process.ts'
import { requirement } from './support/require.ts'

// Each process has a limit of its own, with a message that says more than the runner's.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 300_000 })

const NAME = 'dsh-checkpoint-otel'
const online = await run({ ...npm(['ping']), cwd: ROOT, limitMs: 20_000 }).then(
  ({ code }) => code === 0,
  () => false,
)

/** The newest long-term release; the tests themselves run on the oldest one that is supported. */
const NODE_24 = await installHost({ name: 'node-24', manager: 'npm', manifest: { dependencies: { node: '24.9.0' } } })
const node24 = 'folder' in NODE_24 ? join(NODE_24.folder, 'node_modules/node/bin/node') : undefined

describe.skipIf(!requirement('the npm registry', online))('the tarball', () => {
  const folders: string[] = []
  let tarball: string
  let subpaths: string[]
  let empty: string
  let harness: string
  const installed = new Map<string, Finished>()

  beforeAll(async () => {
    tarball = await packProject()
    const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { exports: object }
    subpaths = Object.keys(exports).map((path) => path.replace(/^\./, NAME))
    empty = await install({ private: true })
    harness = await install(HOST_SETS.find((set) => set.name === 'core-rc8')?.manifest ?? {})
  })
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

  test('[D10] installs in an empty folder and in a harness project without a conflict, and without a second host', async () => {
    for (const { stderr } of installed.values()) expect(stderr).not.toContain('ERESOLVE')
    // Optional peers: an empty folder gets no harness, a harness project keeps the one it has.
    expect(await copies(empty, '@deepseek-ai/dsh-session')).toEqual([])
    expect(await copies(harness, '@deepseek-ai/cordis')).toEqual(['node_modules/@deepseek-ai/cordis'])
    expect(await copies(harness, '@opentelemetry/api')).toEqual(['node_modules/@opentelemetry/api'])
  })

  test('loads at every subpath in a harness project', async () => {
    expect(subpaths.length).toBeGreaterThan(1)
    for (const subpath of subpaths) expect(await load(harness, subpath)).toBe('')
  })

  test.skipIf(!requirement('Node 24', node24 !== undefined))('loads at every subpath on Node 24, too', async () => {
    for (const subpath of subpaths) expect(await load(harness, subpath, node24)).toBe('')
  })

  test('[D10] loads without any host package, but for the conformance suite, which is an app of its own', async () => {
    for (const subpath of subpaths.filter((each) => !each.endsWith('/testing')))
      expect(await load(empty, subpath)).toBe('')
  })

  test.each([true, false])('type-checks a strict consumer, skipLibCheck %s', async (skipLibCheck) => {
    await cp(join(ROOT, 'test/support/compat-consumer.ts.txt'), join(harness, 'consumer.ts'))
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      noEmit: true,
      types: [],
      skipLibCheck,
    }
    await writeFile(join(harness, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
    const { code, stdout } = await tool('typescript/bin/tsc', ['-p', harness])
    expect(stdout).toBe('')
    expect(code).toBe(0)
  })

  test('passes publint --strict and attw', async () => {
    expect(await tool('publint/src/cli.js', [tarball, '--strict'])).toMatchObject({ code: 0 })
    const attw = await tool('@arethetypeswrong/cli/dist/index.js', [tarball, '--profile', 'esm-only'])
    expect(attw).toMatchObject({ code: 0 })
  })

  async function install(manifest: object): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'dsh-package-'))
    folders.push(folder)
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', ...manifest }))
    installed.set(
      folder,
      await succeed({ ...npm(['install', '--no-audit', '--no-fund', tarball]), cwd: folder, limitMs: 120_000 }),
    )
    return folder
  }
})

function npm(args: readonly string[]) {
  return { what: `npm ${args[0]}`, command: 'npm', args }
}

/** What loading a subpath says when it fails; nothing when it loads. */
async function load(folder: string, subpath: string, node = process.execPath): Promise<string> {
  const attributes = subpath.endsWith('.json') ? `, { with: { type: 'json' } }` : ''
  const code = `await import('${subpath}'${attributes})`
  const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '--eval', code]
  const result = await run({
    what: `import of ${subpath}`,
    command: node,
    args,
    cwd: folder,
    limitMs: 30_000,
  })
  return result.code === 0 ? result.stderr : `${subpath}: ${result.stderr}`
}

function tool(script: string, args: readonly string[]): Promise<Finished> {
  const path = join(ROOT, 'node_modules', script)
  return run({ what: script, command: process.execPath, args: [path, ...args], cwd: ROOT, limitMs: 60_000 })
}

/** Every copy of a package below a folder. */
async function copies(folder: string, name: string): Promise<string[]> {
  const files = await readdir(join(folder, 'node_modules'), { recursive: true })
  return files
    .filter((file) => file.endsWith(`${name}/package.json`))
    .map((file) => join('node_modules', file, '..'))
    .toSorted()
}
