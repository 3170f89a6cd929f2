/** The doctor on rows: which policy, strategy and backend are mounted, and the lines that put it right. */
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { doctor, finding, packageAt, profile, troubles, write } from './support/doctor.ts'
import { scratch } from './support/cli.ts'

// A dsh of this machine would be asked in place of the files.
beforeEach(() => vi.stubEnv('PATH', ''))

describe('the rows of a profile', () => {
  test('a profile with this package added is healthy, and its rows are listed in their order', async () => {
    const report = await doctor(profile())
    expect(troubles(report)).toEqual({})
    expect(report).toMatchObject({ ok: true, profile: 'p', strategy: 'default' })
    expect(report.rows.map(({ position, id, role, state }) => `${position} ${id}: ${role}, ${state}`)).toEqual([
      '1 llm-retry: retry, on',
      '2 session-persistence-jsonl: backend, on',
      '3 session-checkpoint-policy: stock policy, off',
      '5 session-checkpoint-otel: policy, on',
    ])
    expect(report.rows[2]?.from).toBe('base, patched by dsh-checkpoint-otel')
  })

  test('the stock policy switched on again is an error, and the lines given put it right', async () => {
    const folder = profile('- { id: session-checkpoint-policy, disabled: false }')
    const report = await doctor(folder)
    expect(troubles(report)).toEqual({ 'stock-policy': 'error' })
    expect(report.ok).toBe(false)
    const [where, ...lines] = finding(report, 'stock-policy').change?.split('\n') ?? []
    expect(where).toBe(`add to ${join(folder, 'cordis.patch.yml')}:`)
    write(folder, { 'cordis.patch.yml': `- { id: session-checkpoint-policy, disabled: false }\n${lines.join('\n')}\n` })
    expect(troubles(await doctor(folder))).toEqual({})
  })

  test('a stock policy that an expression decides about is a warning: the doctor evaluates nothing', async () => {
    const report = await doctor(profile('- { id: session-checkpoint-policy, disabled: !!js "process.exit(7)" }'))
    expect(troubles(report)).toEqual({ 'stock-policy': 'warning' })
  })

  test('this package switched off leaves an error, and off as well as the stock policy too', async () => {
    const report = await doctor(profile('- { id: session-checkpoint-otel, disabled: true }'))
    expect(troubles(report)).toEqual({ policy: 'error' })
    expect(finding(report, 'policy').message).toContain('switched off')
  })

  test('this package mounted twice is an error', async () => {
    expect(troubles(await doctor(profile('- insert: [{ id: again, name: dsh-checkpoint-otel }]')))).toEqual({
      policy: 'error',
    })
  })

  test('two rows of one id are an error', async () => {
    expect(troubles(await doctor(profile('- insert: [{ id: shell, name: other }]')))).toEqual({ 'row-id': 'error' })
  })

  test('a patch that fits no row is said, as the host skips it in silence', async () => {
    const report = await doctor(profile('- { id: session-checkpoint-policy, name: dsh-checkpoint-otel }'))
    expect(troubles(report)).toEqual({ composition: 'warning' })
    expect(finding(report, 'composition').message).toContain('"session-checkpoint-policy" fits no row')
  })

  test('a patch that is no YAML is an error that quotes nothing of it', async () => {
    const report = await doctor(profile('- { id: a, token: s3cret\n  - : ]'))
    expect(troubles(report)).toEqual({ composition: 'error' })
    expect(JSON.stringify(report)).not.toContain('s3cret')
  })

  test('without a backend the policy is never loaded: a warning, with the row to put in', async () => {
    const folder = profile('- { id: session-persistence-jsonl, disabled: true }')
    const report = await doctor(folder)
    expect(troubles(report)).toEqual({ backend: 'warning' })
    const lines = finding(report, 'backend').change?.split('\n').slice(1).join('\n') ?? ''
    write(folder, { 'cordis.patch.yml': lines.replace('id: session-persistence-jsonl', 'id: mine') })
    expect(troubles(await doctor(folder))).toEqual({})
  })
})

describe('strategies', () => {
  const coalesced = '- insert: [{ id: s1, name: dsh-checkpoint-otel/strategies/coalesced }]\n'
  const pipelined = '- insert: [{ id: s2, name: dsh-checkpoint-otel/strategies/pipelined }]\n'

  test('one is named', async () => {
    const report = await doctor(profile(coalesced))
    expect(troubles(report)).toEqual({})
    expect(report.strategy).toBe('dsh-checkpoint-otel/strategies/coalesced')
  })

  test('two are an error; one of them switched off is none', async () => {
    const report = await doctor(profile(coalesced + pipelined))
    expect(troubles(report)).toEqual({ strategy: 'error' })
    expect(finding(report, 'strategy').change).toContain('- id: s2\n  disabled: true')
    expect(troubles(await doctor(profile(`${coalesced}${pipelined}- { id: s2, disabled: true }`)))).toEqual({})
  })

  test('a strategy of somebody else counts when its name says what it is', async () => {
    const files = packageAt('profiles/node_modules/my-checkpoint-strategy', '1.0.0')
    const report = await doctor(profile(`${coalesced}- insert: [{ id: mine, name: my-checkpoint-strategy }]`, files))
    expect(troubles(report)).toEqual({ strategy: 'error' })
  })

  test('selective needs the permission of the policy, and with it is noted', async () => {
    const selective =
      '- insert: [{ id: s, name: dsh-checkpoint-otel/strategies/selective, config: { tools: [read] } }]\n'
    expect(troubles(await doctor(profile(selective)))).toEqual({ unguarded: 'error' })
    const allowed = await doctor(
      profile(`${selective}- { id: session-checkpoint-otel, config: { allowUnguarded: true } }`),
    )
    expect(troubles(allowed)).toEqual({})
    expect(finding(allowed, 'unguarded').level).toBe('note')
  })
})

describe('settings', () => {
  test('what the host would refuse at its start is an error that names row, field and rule', async () => {
    const report = await doctor(profile('- { id: session-checkpoint-otel, config: { timeoutMs: soon } }'))
    expect(troubles(report)).toEqual({ config: 'error' })
    expect(finding(report, 'config').message).toBe(
      'row session-checkpoint-otel: dsh-checkpoint-otel: timeoutMs must be a number of milliseconds from 1 to 2147483647',
    )
  })

  test('a field that an expression sets is not judged', async () => {
    expect(
      troubles(await doctor(profile('- { id: session-checkpoint-otel, config: { timeoutMs: !!js "1" } }'))),
    ).toEqual({})
  })

  test('a subpath that does not exist is an error', async () => {
    expect(troubles(await doctor(profile('- insert: [{ id: x, name: dsh-checkpoint-otel/promtheus }]')))).toEqual({
      config: 'error',
    })
  })

  test('two endpoints on one port are a warning', async () => {
    const rows =
      '[{ id: a, name: dsh-checkpoint-otel/prometheus }, { id: b, name: dsh-checkpoint-otel/inspector, config: { port: 9464 } }]'
    expect(troubles(await doctor(profile(`- insert: ${rows}`)))).toEqual({ port: 'warning' })
    expect(troubles(await doctor(profile(`- insert: ${rows.replace('9464', '9466')}`)))).toEqual({})
  })
})

test('where the host itself is not found, nothing is called missing', async () => {
  const report = await doctor(
    profile('[]', { 'profiles/p/package.json': { dsh: { profile: { bundles: ['nowhere', 'dsh-checkpoint-otel'] } } } }),
  )
  expect(troubles(report)).toEqual({ composition: 'warning' })
  expect(finding(report, 'composition').message).toContain('nowhere')
})

describe('a project of its own', () => {
  const rows = `
- { id: backend, name: '@deepseek-ai/dsh-session-persistence-jsonl', config: { root: ./logs } }
- id: all
  name: '@deepseek-ai/cordis-plugin-group'
  config: [{ id: ours, name: dsh-checkpoint-otel }, { id: scrape, name: dsh-checkpoint-otel/prometheus }]
`
  function project(files: Parameters<typeof write>[1]): string {
    const folder = scratch()
    write(folder, {
      'package.json': { name: 'app', dependencies: { 'dsh-checkpoint-otel': '*', '@deepseek-ai/cordis': '*' } },
      ...packageAt('node_modules/dsh-checkpoint-otel', '0.1.0', { peerDependencies: { '@opentelemetry/api': '*' } }),
      ...packageAt('node_modules/@opentelemetry/api', '1.10.0'),
      ...packageAt('node_modules/@deepseek-ai/cordis', '4.0.4'),
      ...packageAt('node_modules/@deepseek-ai/dsh-session-persistence-jsonl', '0.1.0-rc.8'),
      ...files,
    })
    return folder
  }

  test('its file of rows is read, groups unfolded', async () => {
    const folder = project({ 'cordis.yml': rows })
    const report = await doctor(folder)
    expect(troubles(report)).toEqual({})
    expect(report.rows.map((row) => row.id)).toEqual(['backend', 'ours', 'scrape'])
    expect(report.source).toBe(join(folder, 'cordis.yml'))
  })

  test('a group that is switched off switches its rows off', async () => {
    expect(
      troubles(await doctor(project({ 'cordis.yml': rows.replace('id: all', 'id: all\n  disabled: true') }))),
    ).toEqual({ policy: 'error' })
  })

  test('a file under a name of its own is read where it is named', async () => {
    const folder = project({ 'agent.yml': rows })
    expect((await doctor(folder, { config: join(folder, 'agent.yml') })).rows).toHaveLength(3)
  })

  test('without one, the packages and the disk are examined, and it says what it cannot see', async () => {
    const report = await doctor(project({}))
    expect(troubles(report)).toEqual({})
    expect(report).toMatchObject({ rows: [], strategy: 'not known' })
    expect(finding(report, 'composition').level).toBe('note')
  })
})
