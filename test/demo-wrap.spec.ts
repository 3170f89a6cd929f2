/** Prose of the commands at the width of a terminal. */
import { stripVTControlCharacters, styleText } from 'node:util'
import { describe, expect, test } from 'vitest'
import { columnsOf, wrap } from '../src/cli/wrap.ts'
import { runCli, scratch } from './support/cli.ts'

const LINE = '  one two three four five six seven eight nine ten'

describe('a line', () => {
  test('is broken between words, with its indent kept and later lines hanging', () => {
    expect(wrap(LINE, 2, 20)).toBe('  one two three four\n    five six seven\n    eight nine ten')
  })

  test('that fits is left alone, and so is a word that does not fit', () => {
    expect(wrap(LINE, 2, LINE.length)).toBe(LINE)
    expect(wrap('  /a/path/that/is/long (5 events)', 2, 10)).toBe('  /a/path/that/is/long\n    (5\n    events)')
    expect(wrap('', 2, 20)).toBe('')
  })

  test('keeps spaces that lay it out', () => {
    expect(wrap('ok       all is well here', 9, 14)).toBe('ok       all\n         is\n         well\n         here')
  })

  test('is as long as it is seen, whatever its colours are', () => {
    const painted = styleText('red', LINE, { validateStream: false })
    expect(stripVTControlCharacters(wrap(painted, 2, 20))).toBe(wrap(LINE, 2, 20))
  })
})

test('the width is what the user names, else that of the terminal, and never beyond its bounds', () => {
  const stream = (columns?: number) => ({ columns }) as NodeJS.WriteStream
  expect([
    columnsOf(stream(80), '60'),
    columnsOf(stream(80), ''),
    columnsOf(stream(80), 'wide'),
    columnsOf(stream(300), ''),
    columnsOf(stream(), ''),
    columnsOf(stream(3), ''),
    columnsOf(stream(80), '0'),
  ]).toEqual([60, 80, 80, 100, 100, 30, 30])
})

test('the demo and the doctor keep to it, but for tables and paths', async () => {
  const env = { COLUMNS: '60', NO_COLOR: '1', PATH: '' }
  const demo = await runCli(['demo', '--turns', '1', '--dir', scratch()], { env })
  const doctor = await runCli(['doctor', '--no-write'], { env })
  const checks = demo.stdout.slice(demo.stdout.indexOf('What was checked'), demo.stdout.indexOf('Session logs, kept'))
  const found = doctor.stdout.slice(doctor.stdout.indexOf('Found'))
  for (const text of [checks, found]) {
    expect(text.split('\n').length).toBeGreaterThan(8)
    expect(text.split('\n').filter((line) => line.length > 60)).toEqual([])
  }
})
