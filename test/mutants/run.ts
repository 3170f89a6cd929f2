/** Copies of the sources, each broken in one way, and the tests that must notice, in one run of vitest. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from './list.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
/** Name of the copy that is not broken. */
export const WHOLE = 'whole'
/** A mutant may hang what it breaks: then its test is red after this long. */
const TEST_LIMIT_MS = 6_000

/** A leak shows long before the rounds of the real run are over. */
const LIFECYCLE_ROUNDS = 40

/** What became of the tests of one copy. */
export interface Verdict {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** Spec files that could not even be loaded, which proves nothing. */
  readonly broken: readonly string[]
}

/** What to run on each copy. */
export interface RunOptions {
  /** Only the tests that a mutant names; otherwise all of the named spec files. */
  readonly named: boolean
  /** Spec files below `test/` for every copy, beside the one that a mutant names. */
  readonly specs?: readonly string[]
}

/**
 * Run the tests on a copy of the sources for each mutant, and on one that is whole.
 * @returns the verdicts by name of the mutant, {@link WHOLE} for the whole one.
 */
export async function runMutants(
  mutants: readonly Mutant[],
  options: RunOptions,
): Promise<ReadonlyMap<string, Verdict>> {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-mutants-'))
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
    writeFileSync(join(folder, 'setup.ts'), SETUP)
    writeFileSync(join(folder, 'vitest.config.ts'), CONFIG)
    const names = [WHOLE, ...mutants.map(({ name }) => name)]
    createCopy(join(folder, '0'), mutants, options)
    for (const [index, mutant] of mutants.entries()) {
      createCopy(join(folder, String(index + 1)), [mutant], options)
      mutate(join(folder, String(index + 1), 'src'), mutant)
    }
    const results = await runVitest(folder)
    return new Map(names.map((name, index) => [name, verdictOf(results, join(folder, String(index), 'test'))]))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const CONFIG = `import { defineConfig } from 'vitest/config'
export default defineConfig({
  test: { include: ['*/test/*.spec.ts'], pool: 'forks', setupFiles: ['setup.ts'], maxWorkers: 3, allowOnly: true, testTimeout: ${TEST_LIMIT_MS}, hookTimeout: ${TEST_LIMIT_MS} },
})
`
const SETUP = `import { vi } from 'vitest'
const waitFor = vi.waitFor
vi.waitFor = (callback, options) => waitFor(callback, typeof options === 'number' ? options : { timeout: ${TEST_LIMIT_MS - 1_000}, interval: 10, ...options })
`

function createCopy(folder: string, mutants: readonly Mutant[], { named, specs = [] }: RunOptions): void {
  mkdirSync(join(folder, 'test'), { recursive: true })
  for (const file of ['package.json', 'tsconfig.json', 'SECURITY.md']) cpSync(join(ROOT, file), join(folder, file))
  cpSync(join(ROOT, 'src'), join(folder, 'src'), { recursive: true })
  for (const name of ['support', 'fixtures', 'lifecycle'])
    cpSync(join(ROOT, 'test', name), join(folder, 'test', name), { recursive: true })
  for (const spec of new Set([...specs, ...mutants.map((mutant) => mutant.spec)])) {
    const text = readFileSync(join(ROOT, 'test', spec), 'utf8')
    const titles = mutants.filter((mutant) => mutant.spec === spec).flatMap(({ tests }) => tests)
    writeFileSync(join(folder, 'test', spec), named ? only(text, spec, titles) : text)
  }
}

/** Leave the tests with these titles alone to run. */
function only(text: string, spec: string, titles: readonly string[]): string {
  let result = text
  for (const title of new Set(titles)) {
    const call = new RegExp(`\\b(test|it)(\\.each\\(.*\\))?\\(\\s*(['"\`](?:\\[D\\d\\d\\] )?${escape(title)})`, 'g')
    const found = [...result.matchAll(call)]
    if (found.length !== 1)
      throw new Error(`${spec}: ${found.length} tests with the title ${JSON.stringify(title)}, expected one`)
    result = result.replace(
      call,
      (_all, name: string, each: string | undefined, rest: string) => `${name}.only${each ?? ''}(${rest}`,
    )
  }
  return result
}

const escape = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

function mutate(source: string, { name, patches }: Mutant): void {
  for (const { file, from, to } of patches) {
    const path = join(source, file)
    const parts = readFileSync(path, 'utf8').split(from)
    if (parts.length !== 2)
      throw new Error(`mutant "${name}": its patch matches ${parts.length - 1} places of src/${file}, expected one`)
    writeFileSync(path, parts.join(to))
  }
}

interface Results {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

function runVitest(folder: string): Promise<Results> {
  const report = join(folder, 'report.json')
  return new Promise((resolve, reject) => {
    const args = [VITEST, 'run', '--root', folder, '--reporter', 'json', '--outputFile', report]
    // Nothing of the run that this is part of: vitest marks its workers in the environment.
    const inherited = Object.entries(process.env).filter(([key]) => !/^(VITEST|NODE_OPTIONS|TEST$)/.test(key))
    const env = { ...Object.fromEntries(inherited), DSH_CHECKPOINT_LIFECYCLE_ROUNDS: String(LIFECYCLE_ROUNDS) }
    execFile(process.execPath, args, { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 }, (_error, stdout, stderr) => {
      try {
        resolve(JSON.parse(readFileSync(report, 'utf8')) as Results)
      } catch (cause) {
        reject(new Error(`vitest left no report: ${stderr || stdout}`, { cause }))
      }
    })
  })
}

function verdictOf({ testResults }: Results, folder: string): Verdict {
  const files = testResults.filter(({ name }) => name.startsWith(`${folder}/`))
  const tests = files.flatMap(({ assertionResults }) => assertionResults)
  const titled = (status: string) => tests.filter((test) => test.status === status).map(({ fullName }) => fullName)
  return {
    passed: titled('passed'),
    failed: titled('failed'),
    broken: files
      .filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0)
      .map(({ message }) => message),
  }
}
