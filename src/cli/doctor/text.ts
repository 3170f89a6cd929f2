/** The report for a terminal. */
import { SCOPE_NAME } from '../../semconv.ts'
import { paint, renderTable } from '../table.ts'
import { wrap } from '../wrap.ts'
import type { Copy, DoctorReport, Finding, Level } from './report.ts'

/** Lay out a report. */
export function doctorText(report: DoctorReport): string {
  const { profile, folder, source, node, version, rows, packages, strategy, findings } = report
  const sections = [
    [
      `${SCOPE_NAME} ${version} on Node ${node.slice(1)}`,
      `${profile === undefined ? 'project' : `profile ${profile}`}: ${folder}`,
      `rows: ${source}`,
      `strategy: ${strategy}`,
    ].join('\n'),
  ]
  if (rows.length > 0) sections.push(paint('bold', 'Mounted, in this order'), rowTable(report))
  if (packages.length > 0) sections.push(paint('bold', 'Loaded'), packageTable(packages))
  sections.push(paint('bold', 'Found'), findings.map(findingText).join('\n'), summary(report))
  return sections.join('\n\n')
}

function rowTable({ rows }: DoctorReport): string {
  const columns = [
    { title: '#', numeric: true },
    { title: 'row' },
    { title: 'is' },
    { title: 'state' },
    { title: 'settings' },
    { title: 'from' },
  ]
  return renderTable(
    columns,
    rows.map((row) => [String(row.position), row.id || row.plugin, row.role, row.state, row.settings, row.from ?? '']),
  )
}

function packageTable(packages: readonly Copy[]): string {
  return renderTable(
    [{ title: 'package' }, { title: 'version' }, { title: 'for' }],
    packages.map((copy) => [copy.name, copy.version, isAlone(copy, packages) ? '' : copy.neededBy.join(', ')]),
  )
}

/** Who loads a copy matters only where there is another one. */
function isAlone({ name }: Copy, packages: readonly Copy[]): boolean {
  return packages.filter((copy) => copy.name === name).length === 1
}

const COLOURS = { ok: 'green', note: 'cyan', warning: 'yellow', error: 'red' } as const satisfies Record<Level, string>

const INDENT = ' '.repeat(11)
const CHANGE = 'change: '

function findingText({ level, message, change }: Finding): string {
  const lines = [wrap(`  ${paint(COLOURS[level], level.padEnd(7))}  ${message}`, INDENT.length - 2)]
  const [only, ...more] = change?.split('\n') ?? []
  if (only !== undefined && more.length === 0) lines.push(wrap(`${INDENT}${CHANGE}${only}`, CHANGE.length))
  // Lines to copy stay as they are.
  else if (only !== undefined)
    lines.push(`${INDENT}${CHANGE}${only}`, ...more.map((line) => `${INDENT}${' '.repeat(CHANGE.length)}${line}`))
  return lines.join('\n')
}

function summary({ findings, ok }: DoctorReport): string {
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length
  return `${ok ? 'Healthy' : 'Not healthy'}: ${plural(count('error'), 'error')}, ${plural(count('warning'), 'warning')}, ${plural(count('note'), 'note')}.`
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
