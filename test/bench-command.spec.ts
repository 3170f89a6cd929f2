/** `bench` as people run it. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { BenchReport } from '../src/cli/bench/report.ts'
import { BIN, runCli, scratch } from './support/cli.ts'

const SMALL = ['--quick', '--rounds', '2', '--encoding', 'raw', '--delay', '200']

test('measures, writes JSON and a report that fetches nothing, and leaves nothing else behind', async () => {
  const dir = scratch()
  const html = join(scratch(), 'report.html')
  const { code, stdout, stderr } = await runCli([
    'bench',
    ...SMALL,
    '--strategy',
    'stock',
    'default',
    'coalesced',
    '--dir',
    dir,
    '--html',
    html,
    '--json',
  ])
  expect(stderr).not.toContain('error')
  expect(code).toBe(0)
  const report = JSON.parse(stdout) as BenchReport
  expect(report).toMatchObject({ kind: 'bench', rounds: 2, reference: 'stock, raw, 200 ms', folder: dir })
  expect(report.workloads.map(({ id }) => id)).toEqual(['one-call'])
  const [workload] = report.workloads
  expect(workload?.cells.map(({ strategy }) => strategy)).toEqual(['stock', 'default', 'coalesced'])
  for (const { waitedMs } of workload?.cells ?? []) expect(waitedMs.median).toBeGreaterThan(0)
  expect(readdirSync(dir)).toEqual([])
  const document = readFileSync(html, 'utf8')
  expect(document).toContain('<canvas id="chart-one-call"')
  expect(document).not.toMatch(/(src|href)="(?!data:)/)
  expect(document).toContain("default-src 'none'")
})

test('the table states ratios, their intervals and the noise', async () => {
  const { code, stdout } = await runCli(['bench', ...SMALL, '--strategy', 'stock', 'selective', '--dir', scratch()])
  expect(code).toBe(0)
  expect(stdout).toMatch(/raw, 200 ms +[\d.]+ m?s +×[\d.]+ \([\d.]+-[\d.]+\)/)
  expect(stdout).toContain('the reference against itself')
  expect(stdout).toContain('Does fsync reach the device?')
  expect(stdout).toContain('before they are on disk')
})

test.each([
  ['an unknown flag', ['--nonsense'], '--nonsense'],
  ['too few rounds', ['--rounds', '1'], 'a whole number from 2'],
  ['a strategy that is none', ['--strategy', 'magic'], 'coalesced'],
  ['a delay of nothing', ['--delay', '0'], 'a whole number from 1'],
  ['a folder that is not there', ['--dir', '/nowhere/at/all'], '--dir: there is no folder /nowhere/at/all'],
  ['a folder that cannot be written', ['--dir', '/proc'], '--dir: nothing can be written in /proc'],
  [
    'a report that cannot be written',
    ['--html', '/nowhere/report.html'],
    '--html: /nowhere/report.html cannot be written (ENOENT)',
  ],
])('%s ends with exit code 2 and says so', async (_, args, words) => {
  const { code, stdout, stderr } = await runCli(['bench', ...args])
  expect(stderr).toContain(words)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s in the middle ends with its exit code and leaves nothing behind', async (signal, expected) => {
  const dir = scratch()
  const child = spawn(process.execPath, [BIN, 'bench', '--dir', dir], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = Promise.withResolvers<number | null>()
  child.on('close', ended.resolve)
  // The first line of progress: files are being written.
  child.stderr.once('data', () => child.kill(signal))
  expect(await ended.promise).toBe(expected)
  expect(readdirSync(dir)).toEqual([])
})

test('help lists the flags and the exit codes', async () => {
  const { code, stdout } = await runCli(['bench', '--help'])
  expect(code).toBe(0)
  for (const word of ['--quick', '--rounds', '--html', '--json', '130']) expect(stdout).toContain(word)
})

test('a report of an earlier run is kept when the flags are wrong', async () => {
  const html = join(scratch(), 'report.html')
  writeFileSync(html, 'earlier')
  const { code } = await runCli(['bench', '--html', html, '--dir', '/nowhere/at/all'])
  expect({ code, text: readFileSync(html, 'utf8') }).toEqual({ code: 2, text: 'earlier' })
})
