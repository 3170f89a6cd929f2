/** The report of `demo --resume` for a person. */
import { checkLines, heading } from './demo-text.ts'
import type { ResumeReport } from './demo-resume.ts'
import type { ResumedCall } from './resumed-calls.ts'
import { paint, renderTable } from './table.ts'
import { wrap } from './wrap.ts'

/** What recovery answered per call, and whether the session can go on. */
export function resumeText(report: ResumeReport): string {
  const { calls, checks, copy, events, sessionId, answeredCalls } = report
  return [
    heading(`Session ${sessionId}, ${events} events`),
    `  ${count(answeredCalls + calls.length, 'tool call')}, ${answeredCalls} with a result of the tool`,
    ...(calls.length === 0 ? [] : ['', table(calls)]),
    '',
    heading('What was checked'),
    checkLines(checks),
    '',
    heading('The copy, kept'),
    `  ${copy}`,
    '',
    verdict(report),
  ].join('\n')
}

function table(calls: readonly ResumedCall[]): string {
  return renderTable(
    [
      { title: 'call' },
      { title: 'tool' },
      { title: 'turn', numeric: true },
      { title: 'step', numeric: true },
      { title: 'answer' },
    ],
    calls.map((call) => [call.callId, call.toolName, String(call.turn), String(call.step), answerOf(call)]),
  )
}

function answerOf({ state, answer }: ResumedCall): string {
  switch (state) {
    case 'now':
      return answer ?? 'no answer'
    case 'earlier':
      return `${answer ?? 'answered'}, by an earlier resume`
    case 'withheld':
      return answer === undefined ? 'not answered' : `not answered; would be ${answer}`
    case 'unresolved':
      return 'UNRESOLVED: its step was closed without a result'
  }
}

function verdict({ ok, calls }: ResumeReport): string {
  const unresolved = calls.filter(({ state }) => state === 'unresolved')
  if (unresolved.length > 0) {
    return paint(
      'red',
      wrap(
        `${count(unresolved.length, 'call')} unresolved: ${unresolved.map(({ callId }) => callId).join(', ')}. The session was not resumed: ` +
          'no provider accepts a call without a result, and a result after the step was closed would be invented.',
      ),
    )
  }
  if (!ok) return paint('red', 'NOT everything that was checked held.')
  const now = calls.filter(({ state }) => state === 'now').length
  return paint(
    'green',
    now === 0
      ? 'No call was open. The session took another turn.'
      : `${count(now, 'open call')} answered. The session took another turn.`,
  )
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}
