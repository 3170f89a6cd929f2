/** Checkpoint overview: is it durable, what does it cost, what is wrong? */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import * as sc from '../src/semconv.ts'
import {
  CALM,
  createDashboard,
  heatmapPanel,
  linePanel,
  statPanel,
  stateMappings,
  statePanel,
  IDLE,
  ZERO,
  type Face,
} from './panels.ts'
import {
  BUDGET_SECONDS,
  counted,
  HUNG_SECONDS,
  LABEL,
  mean,
  NO_AGENT,
  orQuiet,
  PANEL,
  PROCESS_LABELS,
  quantile,
  RANGE,
  rate,
  series,
  state,
  STATES,
  UNFLUSHED_SECONDS,
  WAITING,
} from './queries.ts'

const STATE_STEPS: Face['steps'] = [NO_AGENT, ...STATES].toReversed().map(({ value, color }, index) => [index === 0 ? null : value, color])
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

/** The dashboard as Grafana imports it. */
export function overview(): Dashboard {
  return createDashboard(
    'dsh-checkpoint-overview',
    'Checkpoint overview',
    'Are the session logs of the dsh agents durable, what does waiting for that cost, and what is wrong?',
    [
      { title: 'Is it durable?', panels: durable() },
      { title: 'What does it cost?', panels: cost() },
      { title: 'What is wrong, and where?', panels: wrong() },
    ],
  )
}

function durable() {
  const tile = { width: 3, height: 4 }
  return [
    statPanel(
      {
        title: 'Now, all processes',
        help: 'Worst state of all chosen agent processes: red means agents stop or lose work, so look at the row below for which one and open the incident dashboard.',
        width: 6,
        height: 4,
        unit: 'none',
        steps: STATE_STEPS,
      },
      { expr: `max(${state(PANEL)}) or vector(${NO_AGENT.value})` },
    ).mappings(stateMappings()),
    statPanel(
      {
        ...tile,
        title: 'Agent processes',
        help: 'Processes with a checkpoint policy that report now: when it is lower than you expect, look for crashed or unreachable processes.',
        unit: 'short',
        decimals: 0,
        steps: [
          [null, 'red'],
          [1, 'blue'],
        ],
      },
      { expr: `sum(${series(sc.METRIC_POLICY_ACTIVE, PANEL)}) or vector(0)` },
    ),
    statPanel(
      {
        ...tile,
        title: 'Failed in range',
        help: 'Requests, calls and steps in this time range that were stopped because their log was not durable, and failed writes at turn ends: see the causes below and free or repair the storage.',
        unit: 'short',
        decimals: 0,
        steps: ZERO,
      },
      { expr: orQuiet(counted(sc.METRIC_REJECTIONS, RANGE), PANEL) },
    ),
    statPanel(
      {
        ...tile,
        title: 'Unguarded in range',
        help: 'Requests and calls let go in this time range without a durable log: unset allowUnguarded, fix the strategy, or mount a persistence backend that confirms.',
        unit: 'short',
        decimals: 0,
        steps: [
          [null, 'green'],
          [0.5, 'orange'],
        ],
      },
      { expr: orQuiet(counted(sc.METRIC_UNGUARDED, RANGE), PANEL) },
    ),
    statPanel(
      {
        ...tile,
        title: 'Oldest open barrier',
        help: `Longest that an agent has been waiting right now: above ${HUNG_SECONDS} s the storage hangs, so check it, or cancel the turn.`,
        unit: 's',
        steps: [
          [null, 'green'],
          [HUNG_SECONDS / 6, 'yellow'],
          [HUNG_SECONDS, 'red'],
        ],
        decimals: 0,
      },
      { expr: `max(${series(sc.METRIC_OLDEST_AGE, PANEL)})` },
    ),
    statPanel(
      {
        ...tile,
        title: 'Oldest event at risk',
        help: 'Age of the oldest event outside the durable log, work that a crash would lose: rising without end means that writes fail or hang, so look at the failures.',
        unit: 's',
        decimals: 0,
        steps: [
          [null, 'green'],
          [UNFLUSHED_SECONDS / 5, 'yellow'],
          [UNFLUSHED_SECONDS, 'red'],
        ],
      },
      { expr: `max(${series(sc.METRIC_UNFLUSHED_AGE, PANEL)})` },
    ),
    statPanel(
      {
        ...tile,
        title: 'Recovered in range',
        help: 'Tool calls in this time range whose process died before their result: check by hand whether the effect of each call with verdict "unknown" took place.',
        unit: 'short',
        decimals: 0,
        steps: [
          [null, 'green'],
          [0.5, 'yellow'],
        ],
      },
      { expr: orQuiet(counted(sc.METRIC_RECOVERED, RANGE), PANEL) },
    ),
    statePanel(
      {
        title: 'Each agent process over time',
        help: 'State of each process: a gap means it did not report; one bad row is that machine, all rows bad is shared storage.',
        width: 24,
        height: 5,
        unit: 'none',
        steps: STATE_STEPS,
      },
      { expr: state(PANEL), legend: '{{job}} {{instance}}' },
    ),
  ]
}

function cost() {
  const share = `${rate(sc.METRIC_BARRIER_DURATION, PANEL, [], '_sum')} / on () sum(${series(sc.METRIC_POLICY_ACTIVE, PANEL)})`
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
        help: `One barrier in a hundred waits longer, now: above ${BUDGET_SECONDS * 1_000} ms people notice, so look for stalls in the heatmap below.`,
        unit: 's',
        steps: WAIT_STEPS,
        none: 'no barrier yet',
      },
      { expr: quantile(0.99, sc.METRIC_BARRIER_DURATION, PANEL, [], WAITING) },
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
        [{ expr: quantile(q, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], WAITING), legend: BY_BOUNDARY, exemplar: q === 0.99 }],
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
      { expr: `sum by (le) (increase(${series(sc.METRIC_BARRIER_DURATION, PANEL, '_bucket', WAITING)}[$__rate_interval]))`, exemplar: true },
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

function wrong() {
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
          expr: orQuiet(`${counted(sc.METRIC_REJECTIONS, PANEL, [LABEL.boundary, LABEL.errorType])} > 0`, PANEL, LABEL.errorType),
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
      [{ expr: `topk(10, max by (${PROCESS_LABELS.join(', ')}) (${series(sc.METRIC_OLDEST_AGE, PANEL)}))`, legend: '{{job}} {{instance}}' }],
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
          expr: orQuiet(rate(sc.METRIC_FLUSH_DURATION, PANEL, [LABEL.flushOutcome], '_count'), PANEL, LABEL.flushOutcome),
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
        { expr: orQuiet(counted(sc.METRIC_UNGUARDED, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy), legend: `unguarded, {{${LABEL.strategy}}}` },
        { expr: orQuiet(counted(sc.METRIC_STRATEGY_FAULTS, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy), legend: `faults, {{${LABEL.strategy}}}` },
      ],
      'bars',
    ),
  ]
}
