/** Prose that fits the terminal. */
import { stripVTControlCharacters } from 'node:util'

/** Longer lines are hard to read, however wide the terminal is; a pipe has no width of its own. */
const MAX_COLUMNS = 100
/** Narrower than this nothing can be laid out. */
const MIN_COLUMNS = 30

/**
 * Break a line between words. Words are never broken: a path stays one to be copied.
 * @param line - its indent is kept; colours count nothing.
 * @param hang - what later lines are indented more.
 */
export function wrap(line: string, hang = 0, columns: number = columnsOf(process.stdout)): string {
  const text = line.trimStart()
  const indent = ' '.repeat(stripVTControlCharacters(line).search(/\S|$/))
  const lines: string[] = []
  let current = ''
  // Two spaces in a row belong to the layout: no break there, and none is lost.
  for (const word of text.split(/(?<! ) (?! )/)) {
    const longer = `${current} ${word}`
    if (current === '') current = line.slice(0, line.length - text.length) + word
    else if (lengthOf(longer) <= columns) current = longer
    else {
      lines.push(current)
      current = `${indent}${' '.repeat(hang)}${word}`
    }
  }
  return [...lines, current].join('\n')
}

/** Columns to use on a stream: those the user names, else those of the terminal, within bounds. */
export function columnsOf(stream: NodeJS.WriteStream, named: string | undefined = process.env['COLUMNS']): number {
  const columns = /^\d+$/.test(named ?? '') ? Number(named) : stream.columns
  return Math.max(MIN_COLUMNS, Math.min(columns ?? MAX_COLUMNS, MAX_COLUMNS))
}

function lengthOf(text: string): number {
  return stripVTControlCharacters(text).length
}
