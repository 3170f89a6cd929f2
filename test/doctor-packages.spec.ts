/** The doctor on packages and disks: which copies would be loaded, and what a write is worth. */
import { readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { doctor, finding, packageAt, profile, troubles } from './support/doctor.ts'
import { existingFolder, fileSystemOf } from '../src/cli/doctor/disk.ts'
import { probeDisk } from '../src/cli/doctor/probe.ts'
import { HOST_SETS } from './support/compat-hosts.ts'
import { TESTED_HOSTS } from '../src/cli/doctor/check-packages.ts'
import { scratch } from './support/cli.ts'
import { requirement } from './support/require.ts'

beforeEach(() => vi.stubEnv('PATH', ''))

const API = '@opentelemetry/api'
const OURS = 'profiles/p/node_modules/dsh-checkpoint-otel'
const SDK_ROW = '- insert: [{ id: sdk, name: dsh-checkpoint-otel/node-sdk }]'

describe('copies', () => {
  test('an older API that an SDK loads is a warning: what is registered through it is not seen by us', async () => {
    const sdk = packageAt('profiles/node_modules/@opentelemetry/sdk-trace', '2.9.0', { dependencies: { [API]: '*' } })
    const old = packageAt(`profiles/node_modules/@opentelemetry/sdk-trace/node_modules/${API}`, '1.9.1')
    const report = await doctor(
      profile('- insert: [{ id: host-sdk, name: "@opentelemetry/sdk-trace" }]', { ...sdk, ...old }),
    )
    expect(troubles(report)).toEqual({ 'api-copies': 'warning' })
    expect(finding(report, 'api-copies')).toMatchObject({
      message: expect.stringContaining('1.9.1, is loaded by @opentelemetry/sdk-trace 2.9.0') as string,
      change: expect.stringContaining('"1.10.0"') as string,
    })
    expect(
      report.packages
        .filter((copy) => copy.name === API)
        .map((copy) => copy.version)
        .toSorted(),
    ).toEqual(['1.10.0', '1.9.1'])
  })

  test('an older API of a package that only reads is a note', async () => {
    const reader = packageAt('profiles/node_modules/model-client', '2.0.0', { dependencies: { [API]: '*' } })
    const old = packageAt(`profiles/node_modules/model-client/node_modules/${API}`, '1.9.0')
    const report = await doctor(profile('- insert: [{ id: m, name: model-client }]', { ...reader, ...old }))
    expect(troubles(report)).toEqual({})
    expect(finding(report, 'api-copies').level).toBe('note')
  })

  test('a second copy of one version is a note', async () => {
    const report = await doctor(
      profile('- insert: [{ id: m, name: "@opentelemetry/sdk-trace" }]', {
        ...packageAt('profiles/node_modules/@opentelemetry/sdk-trace', '3.1.0', { dependencies: { [API]: '*' } }),
        ...packageAt(`${OURS}/node_modules/${API}`, '1.10.0'),
      }),
    )
    expect(troubles(report)).toEqual({})
    expect(finding(report, 'api-copies').level).toBe('note')
  })

  test('API 1.9 is well without the SDK plugin and a warning with it', async () => {
    const old = packageAt(`profiles/node_modules/${API}`, '1.9.1')
    expect(troubles(await doctor(profile('[]', old)))).toEqual({})
    expect(troubles(await doctor(profile(SDK_ROW, old)))).toEqual({ api: 'warning' })
    expect(troubles(await doctor(profile(SDK_ROW)))).toEqual({})
  })

  test('an API from before 1.9 is an error', async () => {
    expect(troubles(await doctor(profile('[]', packageAt(`profiles/node_modules/${API}`, '1.8.0'))))).toEqual({
      api: 'error',
    })
  })

  test('two copies of Cordis, or of a part of the harness core, are warnings', async () => {
    const cordis = packageAt(
      'profiles/node_modules/@deepseek-ai/dsh-llm-retry/node_modules/@deepseek-ai/cordis',
      '4.0.3',
    )
    const other = packageAt('profiles/node_modules/other', '1.0.0', {
      peerDependencies: { '@deepseek-ai/cordis': '*', '@deepseek-ai/dsh-session': '*' },
    })
    const session = packageAt('profiles/node_modules/other/node_modules/@deepseek-ai/dsh-session', '0.2.0-rc.1')
    const report = await doctor(profile('- insert: [{ id: o, name: other }]', { ...cordis, ...other, ...session }))
    expect(troubles(report)).toEqual({ cordis: 'warning', 'host-copies': 'warning' })
  })

  test('a row whose package is not installed stops the host, and a row that is off does not', async () => {
    const row = '- insert: [{ id: mine, name: my-checkpoint-strategy, disabled: OFF }]'
    const report = await doctor(profile(row.replace('OFF', 'false')))
    expect(troubles(report)).toEqual({ 'row-package': 'error' })
    expect(finding(report, 'row-package').message).toContain(
      'mine needs my-checkpoint-strategy, which is not installed',
    )
    expect(troubles(await doctor(profile(row.replace('OFF', 'true'))))).toEqual({})
  })

  test('a package that no mounted row loads is not counted', async () => {
    const stray = packageAt('profiles/node_modules/stray/node_modules/@deepseek-ai/cordis', '3.0.0')
    expect(troubles(await doctor(profile('[]', stray)))).toEqual({})
  })

  test('an older release of this package than the doctor is said, with the doctor that fits it', async () => {
    const report = await doctor(
      profile(
        '[]',
        packageAt(OURS, '0.0.9', { dependencies: { [API]: '*' }, dsh: { bundle: { patch: 'cordis.patch.yml' } } }),
      ),
    )
    expect(finding(report, 'package')).toMatchObject({ level: 'note', change: 'npx dsh-checkpoint-otel@0.0.9 doctor' })
  })

  test('a harness release that nobody ran this on is a note, and the list is that of the compatibility suite', async () => {
    const report = await doctor(
      profile('[]', packageAt('profiles/node_modules/@deepseek-ai/dsh-session', '0.2.2-rc.1')),
    )
    expect(troubles(report)).toEqual({})
    expect(finding(report, 'host').level).toBe('note')
    expect(new Set(HOST_SETS.map((set) => set.releases[1]))).toEqual(new Set(TESTED_HOSTS))
  })
})

describe('the disk', () => {
  test('the probe goes into the folder of the logs, or the nearest above it that exists, and leaves nothing', async () => {
    const folder = profile()
    const home = existingFolder(`${folder}/../..`)
    const before = readdirSync(home)
    const report = await doctor(folder, { write: true })
    expect(report.disk).toMatchObject({
      folder: `${folder.replace(/\/profiles\/p$/, '')}/sessions`,
      isBackend: true,
      appends: 20,
    })
    expect(report.disk?.medianMs).toBeGreaterThan(0)
    expect(readdirSync(home)).toEqual(before)
  })

  test('nothing is written where the caller says so', async () => {
    expect((await doctor(profile())).disk).toBeUndefined()
  })

  test('a root that an unknown expression makes is not guessed: another folder is looked at, and that is said', async () => {
    const report = await doctor(
      profile('- { id: session-persistence-jsonl, config: { root: !!js "process.env.LOGS" } }'),
      { write: true },
    )
    expect(report.disk?.isBackend).toBe(false)
    expect(finding(report, 'disk-target').level).toBe('note')
  })

  const memory = process.platform === 'linux' && fileSystemOf('/dev/shm').kind === 'memory'
  test.skipIf(!requirement('a tmpfs at /dev/shm', memory))(
    'logs in memory are a warning, with what to do',
    async () => {
      const report = await doctor(
        profile('- { id: session-persistence-jsonl, config: { root: /dev/shm/not-there-yet } }'),
        { write: true },
      )
      expect(troubles(report)).toEqual({ disk: 'warning' })
      expect(finding(report, 'disk').message).toContain('/dev/shm/not-there-yet is on tmpfs')
      expect(
        (await doctor(profile('- { id: session-persistence-jsonl, config: { root: /dev/shm } }'), { strict: true })).ok,
      ).toBe(false)
    },
  )

  test('a probe that is interrupted takes its file away', async () => {
    const folder = scratch()
    const probe = probeDisk(folder)
    expect(readdirSync(folder)).toHaveLength(1)
    process.emit('SIGINT', 'SIGINT')
    await expect(probe).rejects.toMatchObject({ name: 'Interrupted', exitCode: 130 })
    expect(readdirSync(folder)).toEqual([])
    expect(await probeDisk(folder)).toMatchObject({ appends: 20 })
  })

  test('a folder that cannot be written to is an error with the errno', async () => {
    // procfs refuses new files to root too.
    expect(await probeDisk(process.platform === 'linux' ? '/proc' : `${scratch()}/absent`)).toEqual({
      error: expect.stringMatching(/^E[A-Z]+$/) as string,
    })
  })
})
