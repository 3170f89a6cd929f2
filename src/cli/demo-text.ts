/** The demo's report for a person. */
import type { Check } from './checklist.ts'
import type { DemoReport } from './demo.ts'
import { duration, paint, renderTable } from './table.ts'
import { wrap } from './wrap.ts'

/** Tables, checklist and where the logs lie. */
export function demoText(report: DemoReport): string {
  const { turns, barriers, recovered, checks, logs, ok } = report
  const share = `${(turns.waitedShare * 100).toFixed(0)} %`
  return [
    heading('What the agent waited at barriers'),
    renderTable(
      [
        { title: 'boundary' },
        { title: 'outcome' },
        { title: 'count', numeric: true },
        { title: 'p50', numeric: true },
        { title: 'p95', numeric: true },
        { title: 'p99', numeric: true },
      ],
      barriers.map((row) => [
        row.boundary,
        row.outcome,
        String(row.count),
        ...[row.p50Ms, row.p95Ms, row.p99Ms].map(duration),
      ]),
    ),
    '',
    wrap(
      `  ${turns.count} turns took ${duration(turns.wallMs)}; ${duration(turns.waitedMs)} of it, ${share}, was waiting. ` +
        'Model and tools cost nothing here, so that is an upper bound. At a turn boundary the agent never waits.',
    ),
    '',
    heading('Calls that crash recovery answered'),
    recovered.length === 0
      ? '  none'
      : renderTable(
          [
            { title: 'session' },
            { title: 'call' },
            { title: 'turn', numeric: true },
            { title: 'step', numeric: true },
            { title: 'outcome' },
          ],
          recovered.map((call) => [call.sessionId, call.callId, String(call.turn), String(call.step), call.recovery]),
        ),
    '',
    heading('What was checked'),
    checkLines(checks),
    '',
    heading('Session logs, kept'),
    ...logs.map(({ path, events }) => `  ${path}  (${events} events)`),
    '',
    ok
      ? paint('green', `Every guarantee held. ${duration(report.durationMs)} in all.`)
      : paint('red', `NOT every guarantee held. ${duration(report.durationMs)} in all.`),
  ].join('\n')
}

/** One line a check, with what was seen under it. */
export function checkLines(checks: readonly Check[]): string {
  return checks
    .map(
      ({ ok, title, detail }) =>
        `${wrap(`  ${ok ? paint('green', '✓') : paint('red', '✗')} ${title}`, 2)}\n${paint('dim', wrap(`      ${detail}`))}`,
    )
    .join('\n')
}

/** A line above a section. */
export function heading(text: string): string {
  return paint('bold', text)
}
