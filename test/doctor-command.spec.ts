/** `doctor` as its users call it: output, exit codes, and what it never prints. */
import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runCli, scratch } from './support/cli.ts'
import { profile, write } from './support/doctor.ts'

const env = { PATH: '', DSH_HOME: '', NO_COLOR: '1' }
const run = (...args: string[]) => runCli(['doctor', ...args], { env })

describe('exit codes', () => {
  test('0 for a healthy profile, with what is mounted and what was found', async () => {
    const { code, stdout, stderr } = await run('--dir', profile())
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/5 +session-checkpoint-otel +policy +on/)
    expect(stdout).toMatch(/Healthy: 0 errors, 0 warnings, \d notes?\.\n$/)
  })

  test('1 for an error; a warning is one with --strict only', async () => {
    const broken = profile('- { id: session-checkpoint-policy, disabled: false }')
    const doubtful = profile('- { id: session-checkpoint-policy, disabled: !!js "no" }')
    expect((await run('--dir', broken)).code).toBe(1)
    expect((await run('--dir', doubtful)).code).toBe(0)
    expect((await run('--dir', doubtful, '--strict')).code).toBe(1)
  })

  test('2 for a folder that is neither, an unknown profile and a wrong flag; no profile is created', async () => {
    const home = scratch()
    expect(await run('--dir', home)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no package.json') as string,
    })
    expect(await run('--home', home, '--profile', 'web')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no profile "web"') as string,
    })
    expect((await run('--dri', home)).code).toBe(2)
    expect(readdirSync(home)).toEqual([])
  })
})

test('a profile is found by its name below the home', async () => {
  const folder = profile()
  const { code, stdout } = await run('--home', `${folder}/../..`, '--profile', 'p', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, profile: 'p' })
})

test('no token, header, variable or text of an unknown field is printed, in neither form', async () => {
  const secret = 'hunter2'
  const rows = `
- id: sdk
  name: dsh-checkpoint-otel/node-sdk
  config: { headers: { authorization: ${secret} }, endpoint: 'http://user:${secret}@collector:4318/v1?key=${secret}', serviceName: [${secret}] }
- { id: scrape, name: dsh-checkpoint-otel/prometheus, config: { token: ${secret}, path: 1, unknown: ${secret} } }
- { id: other, name: my-checkpoint-strategy, config: { webhook: ${secret}, nested: { password: ${secret} }, list: [${secret}] } }
- { id: backend, name: '@deepseek-ai/dsh-session-persistence-jsonl', config: { root: !!js "'${secret}'", dsn: ${secret} } }
- { id: ours, name: dsh-checkpoint-otel, config: ${secret} }
`
  const folder = scratch()
  write(folder, { 'package.json': { name: 'app' }, 'cordis.yml': rows })
  for (const args of [[], ['--json']]) {
    const { stdout, stderr } = await runCli(['doctor', '--dir', folder, ...args], {
      env: { ...env, OTEL_EXPORTER_OTLP_HEADERS: `a=${secret}` },
    })
    expect(stdout).toContain('http://collector:4318')
    expect(stdout + stderr).not.toContain(secret)
  }
})
