/** The doctor on a profile of the real dsh, whose rows it asks the CLI for. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { DoctorReport } from '../src/cli/doctor/report.ts'
import { runCli } from './support/cli.ts'
import { troubles } from './support/doctor.ts'
import { DshHome } from './support/dsh-cli.ts'
import { findCli } from './support/dsh-cli-hosts.ts'
import { ROOT } from './support/dsh-cli-process.ts'

// Where the CLI is not in the cache yet, it is installed first.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 600_000 })

const cli = await findCli()

describe.skipIf(cli === undefined)('in a profile of the real dsh', () => {
  let home: DshHome
  const patch = (text: string) => writeFileSync(join(home.profile, 'cordis.patch.yml'), text)
  const examine = async (): Promise<DoctorReport & { code: number | null }> => {
    const { code, stdout } = await runCli(['doctor', '--dir', home.profile, '--json'], { env: { PATH: '' } })
    return { ...(JSON.parse(stdout) as DoctorReport), code }
  }

  beforeAll(async () => {
    home = await DshHome.create(cli ?? '')
    // The first start makes the profile and links the host's packages into the home.
    await home.dumpConfig()
  })
  afterAll(() => home?.remove())

  test('before this package is added, it says so, with the command that adds it', async () => {
    const report = await examine()
    expect(report).toMatchObject({ code: 1, source: 'dsh 0.1.0-rc.8 --dump-config' })
    expect(troubles(report)).toEqual({ policy: 'error', package: 'error' })
    expect(report.findings.find(({ id }) => id === 'policy')?.change).toBe(
      'dsh plugin --profile headless add dsh-checkpoint-otel',
    )
  })

  test('with its bundle in the profile all is well, and the backend writes into the home', async () => {
    addPackage(home.profile)
    patch('[]')
    const report = await examine()
    expect(troubles(report)).toEqual({})
    expect(report.code).toBe(0)
    expect(report.rows.map(({ id, state }) => `${id} ${state}`)).toEqual([
      'llm-retry on',
      'session-persistence-jsonl on',
      'session-checkpoint-policy off',
      'session-checkpoint-otel on',
    ])
    expect(report.rows[2]?.from).toBe('@deepseek-ai/dsh-base, patched by dsh-checkpoint-otel')
    expect(report.disk).toMatchObject({ folder: join(home.profile, '../../sessions'), isBackend: true })
    expect(report.packages.filter(({ name }) => name === '@deepseek-ai/cordis')).toHaveLength(1)
  })

  test('the stock policy switched on again, and a second strategy, are errors', async () => {
    const strategy = (id: string, name: string) =>
      `- insert: [{ id: ${id}, name: dsh-checkpoint-otel/strategies/${name} }]\n`
    patch(
      `- { id: session-checkpoint-policy, disabled: false }\n${strategy('a', 'coalesced')}${strategy('b', 'pipelined')}`,
    )
    expect(await examine().then((report) => [report.code, troubles(report)])).toEqual([
      1,
      { 'stock-policy': 'error', strategy: 'error' },
    ])
  })

  test('a patch that dsh skips is said in its words', async () => {
    patch('- { id: session-checkpoint-polcy, disabled: true }')
    const report = await examine()
    expect(troubles(report)).toEqual({ composition: 'warning' })
    expect(report.findings[0]?.message).toContain('session-checkpoint-polcy')
  })

  test('a patch that dsh cannot read is an error, and nothing of it is quoted', async () => {
    patch('- { id: a, config: { token: hunter2\n  - : ] }')
    const report = await examine()
    expect(report.code).toBe(1)
    expect(report.findings[0]).toMatchObject({
      id: 'composition',
      level: 'error',
      message: expect.stringContaining('cordis.patch.yml') as string,
    })
    expect(JSON.stringify(report)).not.toContain('hunter2')
  })

  test('where dsh is not found, the files give the same rows', async () => {
    patch('[]')
    const asked = await examine()
    rmSync(join(home.profile, '../node_modules/@deepseek-ai/dsh'))
    const read = await examine()
    expect(read.source).toBe('the files of the profile')
    expect(read.rows).toEqual(asked.rows)
    expect(read.packages).toEqual(asked.packages)
  })
})

/** What `dsh plugin add` leaves behind, without the build: the doctor starts nothing. */
function addPackage(profile: string): void {
  const ours = join(profile, 'node_modules/dsh-checkpoint-otel')
  mkdirSync(ours, { recursive: true })
  for (const file of ['package.json', 'cordis.patch.yml']) cpSync(join(ROOT, file), join(ours, file))
  const file = join(profile, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as {
    dependencies: object
    dsh: { profile: { bundles: string[] } }
  }
  manifest.dependencies = { 'dsh-checkpoint-otel': '*' }
  manifest.dsh.profile.bundles.push('dsh-checkpoint-otel')
  writeFileSync(file, JSON.stringify(manifest))
}
