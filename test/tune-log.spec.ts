/** Reading recorded logs: encodings, damage, formats, folders. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { findLogs } from '../src/cli/tune/find.ts'
import { readLog } from '../src/cli/tune/log.ts'
import { closed, resultOf, scratch, turnWith, writeLog } from './support/cli.ts'

const LINES = [...turnWith(['c1']), resultOf('c1'), ...closed()]

describe('one log', () => {
  test('raw and zstd hold the same rows, in as many frames as there were writes', () => {
    const raw = readLog(writeLog(LINES))
    const zstd = readLog(writeLog(LINES, { zstd: true }))
    expect(raw.rows).toHaveLength(LINES.length)
    expect(zstd).toEqual({ ...raw, encoding: 'zstd' })
    const plain = readFileSync(writeLog(LINES), 'utf8').match(/.*\n/g) ?? []
    const file = join(scratch(), 'session.jsonl.zstd')
    writeFileSync(file, Buffer.concat(plain.map((line) => zstdCompressSync(line))))
    expect(readLog(file).rows).toEqual(raw.rows)
  })

  test('a torn end is left out and said, in a line and in a frame', () => {
    const raw = writeLog(LINES)
    writeFileSync(raw, readFileSync(raw).subarray(0, -20))
    expect(readLog(raw)).toMatchObject({ torn: true })
    expect(readLog(raw).rows).toHaveLength(LINES.length - 1)
    const plain = readFileSync(writeLog(LINES), 'utf8').match(/.*\n/g) ?? []
    const zstd = join(scratch(), 'session.jsonl.zstd')
    writeFileSync(zstd, Buffer.concat(plain.map((line) => zstdCompressSync(line))).subarray(0, -5))
    expect(readLog(zstd)).toMatchObject({ torn: true })
    expect(readLog(zstd).rows).toHaveLength(LINES.length - 1)
  })

  test('a whole log is not torn', () => {
    expect(readLog(writeLog(LINES)).torn).toBe(false)
    expect(readLog(writeLog(LINES, { zstd: true })).torn).toBe(false)
  })

  test('damage in the middle is named with its place', () => {
    const file = writeLog(LINES)
    const lines = readFileSync(file, 'utf8').split('\n')
    writeFileSync(file, lines.with(3, lines[3]?.slice(0, 20) ?? '').join('\n'))
    expect(() => readLog(file)).toThrow('damaged: line 4 is no event')
    writeFileSync(file, lines.with(3, lines[2] ?? '').join('\n'))
    expect(() => readLog(file)).toThrow('damaged: line 4 repeats seq 1')
    const zstd = writeLog(LINES, { zstd: true })
    const bytes = readFileSync(zstd)
    bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 20)
    writeFileSync(zstd, bytes)
    expect(() => readLog(zstd)).toThrow(/damaged|no session log/)
  })

  test('a newer format is read as far as it carries the events', () => {
    const file = writeLog([['novel/event', { whatever: 1 }], ...LINES], { header: { version: 7 } })
    expect(readLog(file)).toMatchObject({ version: 7 })
    expect(findLogs([file]).logs).toMatchObject([
      { version: 7, turns: [{ steps: [{ calls: [{ parallel: false }] }] }] },
    ])
  })

  test.each([
    ['text', 'hello\n', 'no session log'],
    ['nothing', '', 'no session log'],
    ['JSON of something else', '{"type":"other"}\n', 'no session log'],
  ])('%s is no log', (_, text, words) => {
    const file = join(scratch(), 'session.jsonl')
    writeFileSync(file, text)
    expect(() => readLog(file)).toThrow(words)
  })
})

describe('what was named', () => {
  test('a folder is searched for logs of both encodings, and a damaged one left out', () => {
    const root = scratch()
    mkdirSync(join(root, 'project', 'one'), { recursive: true })
    mkdirSync(join(root, 'project', 'two'), { recursive: true })
    copyFileSync(writeLog(LINES), join(root, 'project', 'one', 'session.jsonl'))
    copyFileSync(writeLog(LINES, { zstd: true }), join(root, 'project', 'two', 'session.jsonl.zstd'))
    writeFileSync(join(root, 'session.jsonl'), 'broken\n')
    writeFileSync(join(root, 'project', 'other.jsonl'), 'not looked at\n')
    const { logs, skipped } = findLogs([root])
    expect(logs.map(({ encoding, turns }) => [encoding, turns.length])).toEqual([
      ['raw', 1],
      ['zstd', 1],
    ])
    expect(skipped).toMatchObject([{ path: join(root, 'session.jsonl') }])
  })

  test('a file named twice is read once', () => {
    const file = writeLog(LINES)
    expect(findLogs([file, file]).logs).toHaveLength(1)
  })

  test('a log without a finished turn is left out, and alone it is an error', () => {
    const open = writeLog(turnWith(['c1']))
    expect(findLogs([open, writeLog(LINES)]).skipped).toEqual([
      { path: open, why: 'no finished turn in it (1 cancelled, failed or cut off)' },
    ])
    expect(() => findLogs([open])).toThrow('nothing to replay')
  })
})
