/** `npm start` and `dsh-checkpoint-otel demo`, run as a person runs it. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { demoCommand } from '../src/cli/demo-command.ts'
import type { DemoReport } from '../src/cli/demo.ts'
import { BIN, runCli, scratch } from './support/cli.ts'
import { requirement } from './support/require.ts'

const CHECKS = ['cancelled', 'rejected-tool', 'rejected-request', 'request', 'tool', 'records', 'crash', 'log']

test('checks every guarantee it shows, says what the barriers cost, and ends with exit code 0', async () => {
  const dir = scratch()
  const { code, stdout, stderr } = await runCli(['demo', '--json', '--turns', '3', '--parallel', '5', '--dir', dir])
  expect(stderr).toContain('3 of 3 turns done')
  const report = JSON.parse(stdout) as DemoReport
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([])
  expect(report.checks.map(({ id }) => id)).toEqual(CHECKS)
  expect(code).toBe(0)

  const counts = Object.fromEntries(
    report.barriers.map(({ boundary, outcome, count }) => [`${boundary} ${outcome}`, count]),
  )
  expect(counts).toMatchObject({
    'tool dispatched': 3 * (2 + 5),
    'tool aborted': 1,
    'tool rejected': 1,
    'request rejected': 1,
  })
  for (const { p50Ms, p95Ms, p99Ms } of report.barriers)
    expect([p50Ms, p95Ms, p99Ms].toSorted((a, b) => a - b)).toEqual([p50Ms, p95Ms, p99Ms])

  expect(report.turns.count).toBe(3)
  expect(report.turns.waitedMs).toBeLessThan(report.turns.wallMs)
  expect(report.turns.waitedShare).toBeCloseTo(report.turns.waitedMs / report.turns.wallMs)
  expect(report.recovered).toMatchObject([{ recovery: 'unknown', callId: 'charge-the-card', sessionId: 'demo-crash' }])

  expect(report.dir.startsWith(dir)).toBe(true)
  for (const { path, events } of report.logs)
    expect(readFileSync(path, 'utf8').split('\n').length).toBeGreaterThan(1 + events / 4)
})

test('ends with a table, a checklist and the place of the logs, without colours where nobody sees them', async () => {
  const { code, stdout, stderr } = await runCli(['demo', '--turns', '1', '--parallel', '1', '--dir', scratch()])
  expect(code).toBe(0)
  expect(stderr).toBe('')
  expect(stdout).toMatch(/boundary\s+outcome\s+count\s+p50\s+p95\s+p99\n\s+step\s+dispatched\s+\d+/)
  expect(stdout.match(/^ {2}✓ /gm)).toHaveLength(CHECKS.length)
  expect(stdout).not.toContain('✗')
  expect(stdout).not.toContain('\u001b[')
  const log = /^\s+(\S+demo-crash\S+\.jsonl)/m.exec(stdout)?.[1] ?? ''
  expect(existsSync(log)).toBe(true)
})

test('NO_COLOR wins where colour is forced', async () => {
  const forced = await runCli(['demo', '--turns', '1', '--dir', scratch()], {
    env: { FORCE_COLOR: '1', NO_COLOR: undefined },
  })
  expect(forced.stdout).toContain('\u001b[')
  const plain = await runCli(['demo', '--turns', '1', '--dir', scratch()], {
    env: { NO_COLOR: '1', FORCE_COLOR: undefined },
  })
  expect(plain.stdout).not.toContain('\u001b[')
})

test('with a policy that does not wait the checks fail, and the exit code is 1', async () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const progress = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => {
    vi.restoreAllMocks()
  })
  const policy = new URL('./support/no-wait-policy.ts', import.meta.url).href
  const code = await demoCommand.run({ turns: 2, parallel: 2, json: true, dir: scratch(), policy }, [])
  const report = JSON.parse(String(write.mock.calls.at(-1)?.[0])) as DemoReport
  expect(progress).toHaveBeenCalled()
  expect(code).toBe(1)
  expect(report.ok).toBe(false)
  const failed = report.checks.filter(({ ok }) => !ok).map(({ id }) => id)
  expect(failed).toEqual(
    expect.arrayContaining(['cancelled', 'rejected-tool', 'rejected-request', 'request', 'tool', 'crash']),
  )
})

test('every run has a folder of its own below --dir', async () => {
  const dir = join(scratch(), 'not', 'there', 'yet')
  await Promise.all([1, 2].map(() => runCli(['demo', '--turns', '1', '--dir', dir])))
  expect(readdirSync(dir)).toHaveLength(2)
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s in the middle ends with its exit code and says where the folder is', async (signal, expected) => {
  const dir = scratch()
  const child = spawn(process.execPath, [BIN, 'demo', '--turns', '200', '--json', '--dir', dir])
  const ended = Promise.withResolvers<number | null>()
  child.on('close', ended.resolve)
  let stderr = ''
  child.stderr.on('data', (chunk) => (stderr += chunk))
  child.stderr.once('data', () => child.kill(signal))
  expect(await ended.promise).toBe(expected)
  const kept = join(dir, readdirSync(dir)[0] ?? 'nothing')
  expect(stderr).toContain(`demo: stopped by ${signal}; what it wrote is kept in ${kept}\n`)
})

test.each([
  [['demo', '--turns', 'many'], "'--turns <n>'", 'from 1 to 200'],
  [['demo', '--turns', '0'], "'--turns <n>'", 'from 1 to 200'],
  [['demo', '--parallel', '33'], "'--parallel <n>'", 'from 1 to 32'],
  [['demo', '--parallel', '1.5'], "'--parallel <n>'", 'from 1 to 32'],
  [['demo', '--turns'], "'--turns <n>'", 'missing'],
  [['demo', '--policy', 'x'], "'--policy'", 'unknown option'],
  [['demo', 'extra'], "'demo'", 'too many arguments'],
  [['demo', '--dir', import.meta.filename], '--dir', 'is not a folder'],
  [['demo', '--dir', join(import.meta.filename, 'below')], '--dir', 'is not a folder'],
  [['demo', '--resume', 'a.jsonl', '--turns', '2'], "'--resume <file>'", 'cannot be used with'],
  [['rehearse'], "'rehearse'", 'unknown command'],
])('%j is refused by name, with exit code 2 and nothing on stdout', async (args, name, rule) => {
  const { code, stdout, stderr } = await runCli(args)
  expect(stderr.split('\n')[0]).toContain(name)
  expect(stderr).toContain(rule)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

test.skipIf(!requirement('procfs', process.platform === 'linux'))(
  'a folder that takes no other is refused instead of tried for ever',
  async () => {
    const { code, stderr } = await runCli(['demo', '--dir', '/proc/below/it'])
    expect(stderr).toBe('error: --dir: no folder can be made in /proc/below/it (ENOENT)\n')
    expect(code).toBe(2)
  },
)

test('--help names every flag and exit code', async () => {
  const { code, stdout } = await runCli(['demo', '--help'])
  expect(code).toBe(0)
  for (const word of ['--turns', '--parallel', '--dir', '--json', '--resume', 'Exit codes'])
    expect(stdout).toContain(word)
  expect((await runCli(['--help'])).stdout).toContain('demo')
})
