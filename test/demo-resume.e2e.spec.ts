/** `demo --resume FILE`: what becomes of a log that somebody brings along. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { ResumeReport } from '../src/cli/demo-resume.ts'
import { closed, resultOf, runCli, scratch, turnWith, writeLog } from './support/cli.ts'

/** Resume a log with `--json`, and see that the original was left alone. */
async function resume(file: string): Promise<{ code: number | null; report: ResumeReport }> {
  const before = { bytes: readFileSync(file), mtime: statSync(file).mtimeMs }
  const { code, stdout, stderr } = await runCli(['demo', '--json', '--dir', scratch(), '--resume', file])
  expect({ bytes: readFileSync(file), mtime: statSync(file).mtimeMs }).toEqual(before)
  expect(stderr).not.toContain('error')
  return { code, report: JSON.parse(stdout) as ResumeReport }
}

/** Types of the events of a copy, from the file. */
function copied(path: string): { type: string; data: Record<string, unknown> }[] {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line))
}

test('a recorded call without a result is answered TOOL_OUTCOME_UNKNOWN, and the session goes on', async () => {
  const { code, report } = await resume(writeLog(turnWith(['c1'])))
  expect(report.calls).toEqual([
    { callId: 'c1', toolName: 'bash', turn: 1, step: 1, state: 'now', answer: 'TOOL_OUTCOME_UNKNOWN' },
  ])
  expect(report).toMatchObject({ ok: true, resumed: true, sessionId: 'brought-along', answeredCalls: 0 })
  expect(code).toBe(0)
  expect(copied(report.copy).at(-1)).toMatchObject({
    type: 'turn/end',
    data: { turn: 2, reason: { kind: 'completed' } },
  })
})

test('a call that was asked for and never recorded is answered TOOL_NOT_STARTED', async () => {
  const { code, report } = await resume(writeLog(turnWith(['c1', 'c2'], ['c1'])))
  expect(report.calls.map(({ callId, answer }) => [callId, answer])).toEqual([
    ['c1', 'TOOL_OUTCOME_UNKNOWN'],
    ['c2', 'TOOL_NOT_STARTED'],
  ])
  expect(code).toBe(0)
})

test('a zstd log is read by content, whatever it is called', async () => {
  const file = writeLog(turnWith(['c1']), { zstd: true })
  const renamed = join(scratch(), 'my-session.jsonl')
  writeFileSync(renamed, readFileSync(file))
  const { code, report } = await resume(renamed)
  expect(report.calls).toMatchObject([{ callId: 'c1', answer: 'TOOL_OUTCOME_UNKNOWN' }])
  expect(code).toBe(0)
})

test('a torn last line is left out', async () => {
  const file = writeLog(turnWith(['c1']))
  writeFileSync(file, readFileSync(file).subarray(0, -20))
  const { code, report } = await resume(file)
  expect(report.calls).toMatchObject([{ callId: 'c1', state: 'now', answer: 'TOOL_NOT_STARTED' }])
  expect(code).toBe(0)
})

test('answers of an earlier resume are told apart, and not given again', async () => {
  const first = [...turnWith(['c1']), resultOf('c1', 1, 'TOOL_OUTCOME_UNKNOWN'), ...closed(1, 'interrupted')]
  const { code, report } = await resume(writeLog([...first, ...turnWith(['c2'], ['c2'], 2)]))
  expect(report.calls.map(({ callId, state }) => [callId, state])).toEqual([
    ['c1', 'earlier'],
    ['c2', 'now'],
  ])
  expect(code).toBe(0)
})

describe('[D02] a call without a result in a closed step', () => {
  const dangling = [...turnWith(['c1', 'c2']), resultOf('c2'), ...closed()]

  test('is named as unresolved; no result is appended and no model is asked', async () => {
    const file = writeLog(dangling)
    const { code, report } = await resume(file)
    expect(report.calls).toEqual([{ callId: 'c1', toolName: 'bash', turn: 1, step: 1, state: 'unresolved' }])
    expect(report).toMatchObject({ ok: false, resumed: false, answeredCalls: 1 })
    expect(readFileSync(report.copy, 'utf8')).toBe(readFileSync(file, 'utf8'))
    expect(code).toBe(1)
  })

  test('is never called recovered', async () => {
    const { code, stdout, stderr } = await runCli(['demo', '--dir', scratch(), '--resume', writeLog(dangling)])
    expect(stdout).toContain('UNRESOLVED')
    expect(stdout).toContain('1 call unresolved: c1')
    expect(stdout + stderr).not.toMatch(/recovered/i)
    expect(code).toBe(1)
  })

  test('keeps a call of the open turn from being answered: what recovery would say is only said', async () => {
    const file = writeLog([...dangling, ...turnWith(['c3'], ['c3'], 2)])
    const { code, report } = await resume(file)
    expect(report.calls).toMatchObject([
      { callId: 'c1', state: 'unresolved' },
      { callId: 'c3', state: 'withheld', answer: 'TOOL_OUTCOME_UNKNOWN' },
    ])
    expect(readFileSync(report.copy, 'utf8')).toBe(readFileSync(file, 'utf8'))
    expect(code).toBe(1)
  })

  test('stays unresolved when its result came after the step was closed', async () => {
    const late = [
      ...turnWith(['c1']),
      ['step/end', { turn: 1, step: 1 }] as const,
      resultOf('c1'),
      ...closed().slice(1),
    ]
    const { code, report } = await resume(writeLog(late))
    expect(report.calls).toMatchObject([{ callId: 'c1', state: 'unresolved' }])
    expect(code).toBe(1)
  })
})

test('a log in which every call has its result is resumed, and exits with 0', async () => {
  const { code, report } = await resume(writeLog([...turnWith(['c1']), resultOf('c1'), ...closed()]))
  expect(report).toMatchObject({ ok: true, resumed: true, calls: [], answeredCalls: 1 })
  expect(code).toBe(0)
})

describe('is refused by the name of the flag, with exit code 2 and nothing on stdout:', () => {
  const cases: Record<string, () => readonly [file: string, says: string]> = {
    'a file that is not there': () => [join(scratch(), 'absent.jsonl'), 'there is no file'],
    'a folder': () => [scratch(), 'is a folder'],
    'an empty file': () => [fileWith(''), 'is not a session log'],
    'a file that is no log': () => [fileWith('{"name":"x"}\n'), 'is not a session log'],
    'a file with the magic number of zstd and nothing else': () => [
      fileWith(Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0])),
      'is not a session log',
    ],
    'a newer format version': () => [
      writeLog(turnWith(['c1']), { header: { version: 3 } }),
      'log format version 3, newer than version 0',
    ],
    'a header without what a header needs': () => [
      writeLog(turnWith([]), { header: { delegationDepth: undefined } }),
      'cannot be read as a session log',
    ],
    'a hole in the committed part': () => {
      const file = writeLog([...turnWith(['c1']), resultOf('c1'), ...closed()])
      return [fileWith(readFileSync(file, 'utf8').replace('"seq":3', '"seq":4')), 'seq gap']
    },
  }
  test.each(Object.entries(cases))('%s', async (_what, make) => {
    const [file, says] = make()
    const { code, stdout, stderr } = await runCli(['demo', '--json', '--dir', scratch(), '--resume', file])
    expect(stderr).toContain(`error: --resume: `)
    expect(stderr).toContain(says)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})

function fileWith(content: string | Buffer): string {
  const file = join(scratch(), 'file.jsonl')
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, content)
  return file
}

/** Recorded logs that lie beside a checkout of the maintainers. */
const RECORDED = fileURLToPath(new URL('../../shared/sessions/', import.meta.url))
const recordedLogs = existsSync(RECORDED)
if (!recordedLogs) console.log('skipped, missing: recorded session logs beside the repository')

test.skipIf(!recordedLogs).each([
  ['01-tool-outcome-unknown', 0, [['unknown-outcome-call', 'earlier']]],
  ['02-cancel-before-dispatch', 0, []],
  ['03-parallel-tool-calls', 0, []],
  ['05-dangling-call-closed-turn', 1, [['call_field_05', 'unresolved']]],
])('[D02] the recorded log %s exits with %d', async (name, exitCode, calls) => {
  const { code, report } = await resume(join(RECORDED, `${name}.session.jsonl`))
  expect(report.calls.map(({ callId, state }) => [callId, state])).toEqual(calls)
  expect(code).toBe(exitCode)
})
