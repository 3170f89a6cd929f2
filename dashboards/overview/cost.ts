/** Second row of the overview: what does it cost? */
import * as sc from '../../src/semconv.ts'
import { CALM, type Face, heatmapPanel, IDLE, linePanel, statPanel } from '../panels.ts'
import {
  BUDGET_SECONDS,
  LABEL,
  mean,
  orQuiet,
  OVERDUE_SECONDS,
  PANEL,
  quantile,
  rate,
  series,
  WAITING,
  waiting,
} from '../queries.ts'

const WAIT_STEPS: Face['steps'] = [
  [null, 'green'],
  [BUDGET_SECONDS / 2, 'yellow'],
  [BUDGET_SECONDS, 'red'],
]
const SHARE_STEPS: Face['steps'] = [
  [null, 'green'],
  [0.1, 'yellow'],
  [0.3, 'red'],
]
const BY_BOUNDARY = `{{${LABEL.boundary}}}`

/** What waiting costs now, and how it went. */
export function cost() {
  const share = `${waiting(PANEL)} / on () sum(${series(sc.METRIC_POLICY_ACTIVE, PANEL)})`
  // A barrier that hangs is in no quantile, and is the worst of all.
  const open = `max(${series(sc.METRIC_OLDEST_AGE, PANEL)}) > ${OVERDUE_SECONDS}`
  const tile = { width: 6, height: 4 }
  const line = { width: 8, height: 7, unit: 's', steps: WAIT_STEPS, none: 'no barrier in this time range' }
  return [
    statPanel(
      {
        ...tile,
        title: 'Time spent waiting',
        help: 'Seconds waited per second and agent process, now (parallel calls and agents add up): when high, try another strategy on the latency dashboard before faster storage.',
        unit: 'percentunit',
        decimals: 1,
        steps: SHARE_STEPS,
      },
      { expr: orQuiet(share, PANEL) },
    ),
    statPanel(
      {
        ...tile,
        title: 'A typical wait (p50)',
        help: 'Half of all barriers wait less, now: when this is slow the storage is always slow, so compare flush and barrier on the latency dashboard.',
        unit: 's',
        steps: WAIT_STEPS,
        none: 'no barrier yet',
      },
      { expr: quantile(0.5, sc.METRIC_BARRIER_DURATION, PANEL, [], WAITING) },
    ).mappings(IDLE),
    statPanel(
      {
        ...tile,
        title: 'A bad wait (p99)',
        help: `One barrier in a hundred waits longer, now, or the oldest open one when it is past ${OVERDUE_SECONDS} s: above ${BUDGET_SECONDS * 1_000} ms people notice, so look for stalls below.`,
        unit: 's',
        steps: WAIT_STEPS,
        none: 'no barrier yet',
      },
      { expr: `${open} or ${quantile(0.99, sc.METRIC_BARRIER_DURATION, PANEL, [], WAITING)}` },
    ).mappings(IDLE),
    statPanel(
      {
        ...tile,
        title: 'Barriers per second',
        help: 'How often agents ask for durability, now: zero on busy agents means that the policy is not mounted there.',
        unit: 'ops',
        decimals: 1,
        steps: [[null, 'blue']],
      },
      { expr: orQuiet(rate(sc.METRIC_BARRIER_DURATION, PANEL, [], '_count'), PANEL) },
    ),
    ...[0.5, 0.95, 0.99].map((q) =>
      linePanel(
        {
          ...line,
          title: `Wait at the barrier, p${q * 100}`,
          help: `Time agents wait by boundary (turn never waits): when one boundary stands out ${q === 0.5 ? 'change what the strategy does there' : 'open an exemplar of the heatmap and see what it waited for'}.`,
        },
        [
          {
            expr: quantile(q, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], WAITING),
            legend: BY_BOUNDARY,
            exemplar: q === 0.99,
          },
        ],
      ),
    ),
    heatmapPanel(
      {
        ...line,
        title: 'All waits, with exemplars',
        help: 'How many barriers waited how long: a second band far above the first is a stall, so open the exemplar on it to get to its trace.',
        width: 12,
        height: 8,
        steps: CALM,
      },
      {
        expr: `sum by (le) (increase(${series(sc.METRIC_BARRIER_DURATION, PANEL, '_bucket', WAITING)}[$__rate_interval]))`,
        exemplar: true,
      },
    ),
    linePanel(
      {
        title: 'Barriers per second by boundary',
        help: 'What the agents do: a boundary that vanishes while others go on points at a strategy or a plugin order that bypasses it.',
        width: 6,
        height: 8,
        unit: 'ops',
        steps: CALM,
      },
      [
        {
          expr: orQuiet(rate(sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], '_count'), PANEL, LABEL.boundary),
          legend: BY_BOUNDARY,
        },
      ],
      'area',
    ),
    linePanel(
      {
        title: 'Events per flush',
        help: 'How much one write carries, mean by boundary: near 1 at high rates means many small writes, so try the coalesced strategy; rising during failures is the backlog.',
        width: 6,
        height: 8,
        unit: 'short',
        decimals: 1,
        steps: CALM,
        none: 'no flush in this time range',
      },
      [{ expr: mean(sc.METRIC_FLUSH_EVENTS, PANEL, [LABEL.boundary]), legend: BY_BOUNDARY }],
    ),
  ]
}
