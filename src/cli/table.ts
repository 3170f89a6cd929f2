/** Tables and colours for a terminal, plain where nobody sees colour. */
import { styleText } from 'node:util'
import CliTable from 'cli-table3'

/** A column: its heading, and whether it holds numbers. */
export interface Column {
  readonly title: string
  readonly numeric?: boolean
}

/**
 * Lay out rows under headings.
 * @returns text without a final newline.
 */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const table = new CliTable({
    head: columns.map(({ title }) => title),
    colAligns: columns.map(({ numeric }) => (numeric === true ? 'right' : 'left')),
    chars: QUIET,
    // Colours of the library ignore NO_COLOR and pipes; ours do not.
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2, compact: true },
  })
  table.push(...rows.map((row) => [...row]))
  return table
    .toString()
    .split('\n')
    .map((line) => `  ${line.trimEnd()}`)
    .join('\n')
}

/** Only the line under the headings. */
const QUIET = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
} as const

/** Colour text for a stream; NO_COLOR, FORCE_COLOR and pipes are respected. */
export function paint(
  format: Parameters<typeof styleText>[0],
  text: string,
  stream: NodeJS.WriteStream = process.stdout,
): string {
  return styleText(format, text, { stream, validateStream: true })
}

/**
 * A duration with three figures and its unit.
 * @param milliseconds - not negative.
 */
export function duration(milliseconds: number): string {
  if (milliseconds >= 1_000) return `${(milliseconds / 1_000).toFixed(2)} s`
  if (milliseconds >= 0.1) return `${milliseconds.toFixed(milliseconds >= 100 ? 0 : 2)} ms`
  return `${(milliseconds * 1_000).toFixed(0)} µs`
}
