/** `tune` as people run it, on logs that agents of the demo wrote. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TuneReport } from '../src/cli/tune/report.ts'
import { BIN, closed, resultOf, runCli, scratch, turnWith, writeLog } from './support/cli.ts'

let demo: string

beforeAll(async () => {
  demo = mkdtempSync(join(tmpdir(), 'tune-demo-'))
  await runCli(['demo', '--turns', '2', '--json', '--dir', demo])
})
afterAll(() => rmSync(demo, { recursive: true, force: true }))

test('replays the turns of a folder, ranks every setting, and leaves nothing behind', async () => {
  const dir = scratch()
  const broken = join(scratch(), 'session.jsonl')
  writeFileSync(broken, 'broken\n')
  const { code, stdout, stderr } = await runCli([
    'tune',
    demo,
    broken,
    '--seconds',
    '1',
    '--max-turns',
    '2',
    '--dir',
    dir,
    '--json',
  ])
  expect(stderr).not.toContain('error')
  expect(code).toBe(0)
  const report = JSON.parse(stdout) as TuneReport
  expect(report.logs.length).toBeGreaterThan(0)
  expect(report.skipped).toMatchObject([{ path: broken }])
  expect(report.replay.blocks).toBeGreaterThanOrEqual(3)
  const names = report.ranked.map(({ strategy, encoding, delayMs }) => `${strategy} ${encoding} ${delayMs}`)
  for (const name of [
    'stock raw 200',
    'default raw 200',
    'coalesced zstd 20',
    'pipelined raw 200',
    'selective zstd 200',
  ])
    expect(names).toContain(name)
  const medians = report.ranked.map(({ ratio }) => ratio.median)
  expect(medians).toEqual(medians.toSorted((a, b) => a - b))
  for (const { share } of report.ranked) expect(share.median > 0 && share.median < 1).toBe(true)
  expect(readdirSync(dir)).toEqual([])
})

test('no text, name or id of a log is printed', async () => {
  const lines = [...turnWith(['marker-call']), resultOf('marker-call'), ...closed()]
  const text = JSON.stringify(lines)
    .replaceAll('"bash"', '"marker-tool"')
    .replaceAll('"ok"', '"marker-result"')
    .replaceAll('"go"', '"marker-text"')
  const log = writeLog(JSON.parse(text), { header: { id: 'marker-session', cwd: '/marker/cwd' } })
  const { code, stdout, stderr } = await runCli(['tune', log, '--seconds', '1', '--max-turns', '1'])
  expect(code).toBe(0)
  expect(stdout).toContain('coalesced, zstd, 200 ms')
  expect(stdout).toContain('share of the turn')
  expect(stdout + stderr).not.toContain('marker')
})

test.each([
  ['no log', [], "missing required argument 'log'"],
  ['a missing file', ['/nowhere/session.jsonl'], 'tune: there is no file or folder /nowhere/session.jsonl'],
  ['a folder without logs', ['/proc/self/fdinfo'], 'tune: no session.jsonl or session.jsonl.zstd below'],
  ['a file that is no log', [BIN], 'no session log'],
  ['an unknown flag', ['x', '--nonsense'], '--nonsense'],
  ['a strategy that is none', ['x', '--recorded', 'magic'], 'coalesced'],
])('%s ends with exit code 2 and says so', async (_, args, words) => {
  const { code, stdout, stderr } = await runCli(['tune', ...args])
  expect(stderr).toContain(words)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

test('a folder that cannot be written ends with exit code 2 and says so', async () => {
  const { code, stderr } = await runCli(['tune', demo, '--dir', '/proc'])
  expect(stderr).toContain('--dir: nothing can be written in /proc')
  expect(code).toBe(2)
})

test('Ctrl-C in the middle ends with exit code 130 and leaves nothing behind', async () => {
  const dir = scratch()
  const child = spawn(process.execPath, [BIN, 'tune', demo, '--dir', dir], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = Promise.withResolvers<number | null>()
  child.on('close', ended.resolve)
  child.stderr.once('data', () => child.kill('SIGINT'))
  expect(await ended.promise).toBe(130)
  expect(readdirSync(dir)).toEqual([])
})
