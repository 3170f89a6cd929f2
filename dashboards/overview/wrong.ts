/** Third row of the overview: what is wrong, and where? */
import * as sc from '../../src/semconv.ts'
import { CALM, linePanel } from '../panels.ts'
import { counted, HUNG_SECONDS, LABEL, orQuiet, PANEL, PROCESS_LABELS, rate, series } from '../queries.ts'

/** Failures, hangs, cancellations and what strategies gave away. */
export function wrong() {
  const third = { width: 8, height: 7 }
  return [
    linePanel(
      {
        ...third,
        title: 'Failures by boundary and cause',
        help: 'What stopped agents in the minutes before each bar: ENOSPC or EDQUOT free space, EIO or EROFS replace the disk, timeout raise timeoutMs or find the stall, unconfirmed mount a backend.',
        unit: 'short',
        decimals: 0,
        steps: CALM,
      },
      [
        {
          expr: orQuiet(
            `${counted(sc.METRIC_REJECTIONS, PANEL, [LABEL.boundary, LABEL.errorType])} > 0`,
            PANEL,
            LABEL.errorType,
          ),
          legend: `{{${LABEL.errorType}}} {{${LABEL.boundary}}}`,
        },
      ],
      'bars',
    ),
    linePanel(
      {
        ...third,
        title: 'Barriers that did not let go',
        help: 'Rejected and timed-out barriers stop work, so repair the cause on the left; aborted ones were cancelled by a person or a program and are no fault.',
        unit: 'ops',
        steps: CALM,
      },
      [
        {
          expr: orQuiet(
            rate(sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.outcome], '_count', [`${LABEL.outcome}!="dispatched"`]),
            PANEL,
            LABEL.outcome,
          ),
          legend: `{{${LABEL.outcome}}}`,
        },
      ],
    ),
    linePanel(
      {
        ...third,
        title: 'Age of the oldest open barrier',
        help: 'How long an agent has been waiting, for the ten worst processes: a line that climbs without end is a hung write, so check the storage of that process.',
        unit: 's',
        steps: [
          [null, 'green'],
          [HUNG_SECONDS, 'red'],
        ],
      },
      [
        {
          expr: `topk(10, max by (${PROCESS_LABELS.join(', ')}) (${series(sc.METRIC_OLDEST_AGE, PANEL)}))`,
          legend: '{{job}} {{instance}}',
        },
      ],
    ),
    linePanel(
      {
        ...third,
        title: 'Flushes by what became of them',
        help: 'Anything but durable deserves a look: rejected is the storage, unconfirmed is a missing backend, pending was given up while it still hung.',
        unit: 'ops',
        steps: CALM,
      },
      [
        {
          expr: orQuiet(
            rate(sc.METRIC_FLUSH_DURATION, PANEL, [LABEL.flushOutcome], '_count'),
            PANEL,
            LABEL.flushOutcome,
          ),
          legend: `{{${LABEL.flushOutcome}}}`,
        },
      ],
      'area',
    ),
    linePanel(
      {
        ...third,
        title: 'Calls aborted before dispatch',
        help: 'Tool calls cancelled while their barrier was pending, which never ran: many of them mean that people give up waiting, so look at the waits above.',
        unit: 'short',
        decimals: 0,
        steps: CALM,
      },
      [{ expr: orQuiet(counted(sc.METRIC_ABORTED, PANEL), PANEL), legend: 'aborted' }],
      'bars',
    ),
    linePanel(
      {
        ...third,
        title: 'Unguarded releases and strategy faults',
        help: 'A strategy that weakens or breaks the barrier: see which one, then fix it or unload it, which brings the default back.',
        unit: 'short',
        decimals: 0,
        steps: CALM,
      },
      [
        {
          expr: orQuiet(counted(sc.METRIC_UNGUARDED, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy),
          legend: `unguarded, {{${LABEL.strategy}}}`,
        },
        {
          expr: orQuiet(counted(sc.METRIC_STRATEGY_FAULTS, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy),
          legend: `faults, {{${LABEL.strategy}}}`,
        },
      ],
      'bars',
    ),
  ]
}
