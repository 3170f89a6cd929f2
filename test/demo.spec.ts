/** Parts of the demo that decide what it says. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { describe, expect, test } from 'vitest'
import type { SettledBarrier } from '../src/barrier.ts'
import type { CheckpointObserver, Checkpoints } from '../src/checkpoints.ts'
import { BarrierLog, quantile } from '../src/cli/barrier-log.ts'
import { Checklist, Tally } from '../src/cli/checklist.ts'
import { UsageError } from '../src/cli/command.ts'
import { assertNode } from '../src/cli/host.ts'
import { fatesOf, isContiguous, LogTail } from '../src/cli/session-log.ts'
import { duration } from '../src/cli/table.ts'
import { closed, resultOf, scratch, turnWith, type LogLine } from './support/cli.ts'

test('a quantile is a value that occurred, by nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1)
  expect([0.5, 0.95, 0.99, 1].map((q) => quantile(hundred, q))).toEqual([50, 95, 99, 100])
  expect([0.5, 0.95, 0.99].map((q) => quantile([7], q))).toEqual([7, 7, 7])
})

describe('time spent waiting', () => {
  /** A log that hears of waits that end now and began some milliseconds ago. */
  function heard(...records: Partial<SettledBarrier>[]): BarrierLog {
    let observer: CheckpointObserver = () => {}
    const log = new BarrierLog()
    log.listen({ observe: (given) => ((observer = given), () => {}) } as Checkpoints)
    for (const record of records) observer({ kind: 'barrier', boundary: 'tool', ...record } as SettledBarrier)
    return log
  }

  test('counts parallel waits once', () => {
    const log = heard({ durationMs: 50 }, { durationMs: 50 }, { durationMs: 40 })
    expect(log.waitedMs(0, Infinity)).toBeGreaterThanOrEqual(50)
    expect(log.waitedMs(0, Infinity)).toBeLessThan(60)
  })

  test('leaves out the turn boundary, where the agent never waits', () => {
    expect(heard({ boundary: 'turn', durationMs: 50 }).waitedMs(0, Infinity)).toBe(0)
  })

  test('is cut to the window', () => {
    const log = heard({ durationMs: 50 })
    expect(log.waitedMs(performance.now() - 10, Infinity)).toBeLessThanOrEqual(10)
    expect(log.waitedMs(performance.now() + 1, Infinity)).toBe(0)
  })

  test('is nothing without a policy of this package', () => {
    const log = new BarrierLog()
    log.listen(undefined)
    expect([log.rows(), log.waitedMs(0, Infinity)]).toEqual([[], 0])
  })
})

describe('the fate of a call', () => {
  const fates = (...lines: readonly LogLine[]) => {
    const events = lines.map(([type, data], seq) => ({ type, seq, data })) as unknown as SessionEvent[]
    return fatesOf(events).map(({ callId, state, code }) => [callId, state, ...(code === undefined ? [] : [code])])
  }

  test('is answered when its result came within its step', () => {
    expect(fates(...turnWith(['a']), resultOf('a'), ...closed())).toEqual([['a', 'answered']])
  })

  test('is open while its turn is, recorded or not', () => {
    expect(fates(...turnWith(['a', 'b'], ['a']))).toEqual([
      ['a', 'open'],
      ['b', 'open'],
    ])
  })

  test('is unresolved when its step, its turn or the next turn closed over it', () => {
    const end = closed()
    expect(fates(...turnWith(['a']), ...end.slice(0, 1))).toEqual([['a', 'unresolved']])
    expect(fates(...turnWith(['a']), ...end.slice(1))).toEqual([['a', 'unresolved']])
    expect(fates(...turnWith(['a']), ...turnWith(['b'], ['b'], 2))).toEqual([
      ['a', 'unresolved'],
      ['b', 'open'],
    ])
  })

  test('is unresolved when no message asked for it, for recovery does not look there', () => {
    expect(fates(...turnWith([], ['a']))).toEqual([['a', 'unresolved']])
    expect(fates(...turnWith([], ['a']), resultOf('a'))).toEqual([['a', 'answered']])
  })

  test('is told per step when an id comes twice', () => {
    expect(
      fates(...turnWith(['a']), ...closed(), ...turnWith(['a'], ['a'], 2), resultOf('a', 2, 'ABORTED'), ...closed(2)),
    ).toEqual([
      ['a', 'unresolved'],
      ['a', 'answered', 'ABORTED'],
    ])
  })
})

test('a log is followed line by line, an unfinished line included', () => {
  const path = join(scratch(), 'session.jsonl')
  const tail = new LogTail(path)
  expect(tail.read()).toEqual([])
  const line = (seq: number) =>
    JSON.stringify({
      type: 'tool/call',
      seq,
      time: 0,
      data: { turn: 1, step: 1, callId: `é${seq}`, name: 'x', arguments: '' },
    })
  writeFileSync(path, `{"type":"session"}\n${line(0)}\n`)
  expect(tail.read()).toHaveLength(1)
  const bytes = Buffer.from(`${line(1)}\n`)
  const middle = bytes.indexOf(Buffer.from('é')) + 1
  appendFileSync(path, bytes.subarray(0, middle))
  expect(tail.read()).toHaveLength(1)
  appendFileSync(path, bytes.subarray(middle))
  expect(tail.read().map(({ seq }) => seq)).toEqual([0, 1])
  expect([...tail.calls]).toEqual(['é0', 'é1'])
  expect(isContiguous(tail.events)).toBe(true)
  expect(isContiguous(tail.events.slice(1))).toBe(false)
})

test('a checklist that checked nothing has not held', () => {
  const checks = new Checklist()
  expect(checks.ok).toBe(false)
  checks.add('a', 'A', { one: true }, 'seen')
  expect(checks.ok).toBe(true)
  checks.add('b', 'B', { one: true, two: false, three: false }, 'seen')
  expect(checks.ok).toBe(false)
  expect(checks.all.map(({ detail }) => detail)).toEqual(['seen', 'not so: two; three'])
  const tally = new Tally()
  expect(tally.ok).toBe(false)
  tally.note(true)
  expect(tally.ok).toBe(true)
  tally.note(false)
  expect([tally.ok, tally.text]).toEqual([false, '1 of 2'])
})

test('durations are read at a glance', () => {
  expect([0, 0.0206, 0.5, 12.345, 123.4, 1_234].map(duration)).toEqual([
    '0 µs',
    '21 µs',
    '0.50 ms',
    '12.35 ms',
    '123 ms',
    '1.23 s',
  ])
})

test('an old Node is refused by its number', () => {
  for (const old of ['20.20.2', '22.18.0'])
    expect(() => assertNode(old)).toThrow(new UsageError(`Node 22.19 or newer is needed, this is Node ${old}`))
  for (const good of ['22.19.0', '24.0.0']) expect(() => assertNode(good)).not.toThrow()
})
