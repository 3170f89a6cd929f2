/** The built executable, as the package ships it. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli, scratch } from './support/cli.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const HOST = '@deepseek-ai/cordis'
let built: string

beforeAll(() => {
  const cache = join(ROOT, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  built = mkdtempSync(join(cache, 'demo-dist-'))
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(built, 'dist')], {
    stdio: 'inherit',
  })
  copyFileSync(join(ROOT, 'package.json'), join(built, 'package.json'))
})
afterAll(() => rmSync(built, { recursive: true, force: true }))

/** Path of the executable that package.json names. */
function binOf(folder: string): string {
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { bin: Record<string, string> }
  return join(folder, bin['dsh-checkpoint-otel'] ?? '')
}

/** The build in a folder that has nothing but the dependencies of its command line. */
function bareFolder(): string {
  const folder = scratch()
  execFileSync('cp', ['-r', join(built, 'dist'), join(built, 'package.json'), folder])
  mkdirSync(join(folder, 'node_modules'))
  for (const name of ['commander', 'cli-table3'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  return folder
}

test('the demo holds from the build too, its killed process included', async () => {
  expect(readFileSync(binOf(built), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  const { code, stdout, stderr } = await runCli(['demo', '--json', '--turns', '2', '--dir', scratch()], {
    bin: binOf(built),
  })
  expect(stderr).not.toContain('error')
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, recovered: [{ recovery: 'unknown' }] })
  expect(code).toBe(0)
})

test('without the harness packages it says what to install, with exit code 2', async () => {
  const { code, stdout, stderr } = await runCli(['demo'], { bin: binOf(bareFolder()) })
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  expect(stderr).toContain('npm install dsh-checkpoint-otel@')
  for (const name of [HOST, '@deepseek-ai/dsh-agent-loop']) expect(stderr).toContain(`${name}@${devDependencies[name]}`)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

test('with harness packages of another release it says which ones fit, with exit code 2', async () => {
  const folder = bareFolder()
  const text = readFileSync(join(folder, 'dist', 'cli', 'host.js'), 'utf8')
  const names = [...text.matchAll(/^ {4}'(@[^']+)',$/gm)].map((match) => match[1] ?? '')
  expect(names).toContain(HOST)
  for (const name of names) {
    mkdirSync(join(folder, 'node_modules', name), { recursive: true })
    writeFileSync(
      join(folder, 'node_modules', name, 'package.json'),
      JSON.stringify({ name, type: 'module', exports: './index.js' }),
    )
    writeFileSync(join(folder, 'node_modules', name, 'index.js'), 'export default {}\n')
  }
  const { code, stdout, stderr } = await runCli(['demo'], { bin: binOf(folder) })
  expect(stderr).toContain('the installed harness packages do not fit')
  expect(stderr).toContain('npm install dsh-checkpoint-otel@')
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

test('without them it still helps, and names a wrong flag', async () => {
  const bin = binOf(bareFolder())
  expect((await runCli(['demo', '--help'], { bin })).code).toBe(0)
  const { code, stderr } = await runCli(['demo', '--turns', 'x'], { bin })
  expect(stderr).toContain('--turns')
  expect(code).toBe(2)
})
