/** Latency tuning: which boundary, which strategy, and is it the storage or the process? */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import * as sc from '../src/semconv.ts'
import { annotation, CALM, createDashboard, linePanel, type Face } from './panels.ts'
import {
  BUDGET_SECONDS,
  counted,
  LABEL,
  mean,
  orQuiet,
  PANEL,
  PROCESS,
  PROCESS_LABELS,
  processSeries,
  quantile,
  rate,
  series,
  WAITING,
  waiting,
} from './queries.ts'

const BY_BOUNDARY = `{{${LABEL.boundary}}}`
const BY_STRATEGY = `{{${LABEL.strategy}}}`
const NO_BARRIER = 'no barrier in this time range'
const NO_PROCESS = 'no process metrics: they come with the plugin dsh-checkpoint-otel/prometheus'
const BUDGET: Face['steps'] = [
  [null, 'green'],
  [BUDGET_SECONDS, 'red'],
]

/** The dashboard as Grafana imports it. */
export function latency(): Dashboard {
  return createDashboard(
    'dsh-checkpoint-latency',
    'Checkpoint latency tuning',
    'Compare boundaries, strategies, flush and barrier, and tell slow storage from a busy process. Vertical marks are process starts: before and after a change.',
    [
      { title: 'Boundary against boundary', panels: boundaries() },
      { title: 'Strategy against strategy', panels: strategies() },
      { title: 'Storage or a busy process?', panels: causes() },
    ],
    (dashboard) => {
      const recent = `time() - ${processSeries(PROCESS.started, PANEL)} < $__interval_ms / 1000`
      // No start time on the OTLP path; there each start brings a new instance.
      const fresh = `${series(sc.METRIC_POLICY_ACTIVE, PANEL)} unless (${series(sc.METRIC_POLICY_ACTIVE, PANEL)} offset $__interval)`
      dashboard.annotation(
        annotation(
          'Process starts',
          `${recent} or on (${PROCESS_LABELS.join(', ')}) (${fresh})`,
          '{{job}} {{instance}} started',
          'blue',
        ),
      )
    },
  )
}

function boundaries() {
  const face = { width: 8, height: 8, unit: 's', steps: BUDGET, none: NO_BARRIER }
  return [
    linePanel(
      {
        ...face,
        title: 'Mean wait',
        help: 'What each boundary costs on average: begin with the one that is highest and frequent.',
      },
      [{ expr: mean(sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], WAITING), legend: BY_BOUNDARY }],
    ),
    linePanel(
      {
        ...face,
        title: 'p99 wait',
        help: 'The bad waits of each boundary: above the dashed budget look at the last row for the reason.',
      },
      [
        {
          expr: quantile(0.99, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], WAITING),
          legend: BY_BOUNDARY,
          exemplar: true,
        },
      ],
    ),
    linePanel(
      {
        ...face,
        title: 'Time spent waiting',
        help: 'Seconds waited per second over all chosen processes, stacked: the thickest band is where a strategy saves most.',
        unit: 'percentunit',
        steps: CALM,
      },
      [{ expr: orQuiet(waiting(PANEL, [LABEL.boundary]), PANEL, LABEL.boundary), legend: BY_BOUNDARY }],
      'area',
    ),
  ]
}

function strategies() {
  const face = { width: 8, height: 8, unit: 's', steps: CALM, none: NO_BARRIER }
  return [
    linePanel(
      {
        ...face,
        title: 'Mean wait by strategy',
        help: 'Compare two processes, or before and after a mark: keep the strategy with the lower line at equal work.',
      },
      [{ expr: mean(sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.strategy], WAITING), legend: BY_STRATEGY }],
    ),
    linePanel(
      {
        ...face,
        title: 'p95 wait by strategy',
        help: 'A strategy that lowers the mean but raises this one trades many short waits for few long ones: lower its delay.',
      },
      [{ expr: quantile(0.95, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.strategy], WAITING), legend: BY_STRATEGY }],
    ),
    linePanel(
      {
        ...face,
        title: 'Barriers per second by strategy',
        help: 'How much each strategy decides: compare waits only where this is alike, and expect one strategy in each process.',
        unit: 'ops',
      },
      [
        {
          expr: orQuiet(rate(sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.strategy], '_count'), PANEL, LABEL.strategy),
          legend: BY_STRATEGY,
        },
      ],
      'area',
    ),
    linePanel(
      {
        ...face,
        title: 'What the strategy gave away',
        help: 'Unguarded releases and faults by strategy: a strategy that is fast because it does not wait shows here, so unload it or unset allowUnguarded.',
        width: 24,
        height: 5,
        unit: 'short',
        decimals: 0,
      },
      [
        {
          expr: orQuiet(counted(sc.METRIC_UNGUARDED, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy),
          legend: `unguarded, ${BY_STRATEGY}`,
        },
        {
          expr: orQuiet(counted(sc.METRIC_STRATEGY_FAULTS, PANEL, [LABEL.strategy]), PANEL, LABEL.strategy),
          legend: `faults, ${BY_STRATEGY}`,
        },
      ],
      'bars',
    ),
  ]
}

function causes() {
  const face = { width: 12, height: 8, unit: 's', steps: CALM, none: NO_BARRIER }
  const worstByProcess = (query: string) => `topk(10, ${query})`
  return [
    linePanel(
      {
        ...face,
        title: 'Flush against barrier, p95',
        help: 'Barriers well above flushes wait for siblings or a busy process, so lower the delay; both high together is the write itself.',
      },
      [
        {
          expr: quantile(0.95, sc.METRIC_FLUSH_DURATION, PANEL, [LABEL.boundary], WAITING),
          legend: `flush at ${BY_BOUNDARY}`,
        },
        {
          expr: quantile(0.95, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.boundary], WAITING),
          legend: `barrier ${BY_BOUNDARY}`,
        },
      ],
    ).overrideByRegexp('/^flush/', [{ id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 6] } }]),
    linePanel(
      {
        ...face,
        title: 'Event loop lag and GC beside p95 flush',
        help: 'Lag or GC that rises with the flush is a busy process, so move work off it; a flush that rises alone is the storage.',
        none: NO_PROCESS,
      },
      [
        { expr: quantile(0.95, sc.METRIC_FLUSH_DURATION, PANEL, [], WAITING), legend: 'p95 flush' },
        {
          expr: worstByProcess(processSeries(PROCESS.loopLag, PANEL)),
          legend: 'p99 event loop lag, {{job}} {{instance}}',
        },
        {
          expr: worstByProcess(
            `sum by (${PROCESS_LABELS.join(', ')}) (rate(${processSeries(`${PROCESS.gc}_sum`, PANEL)}[$__rate_interval]))`,
          ),
          legend: 'GC per second, {{job}} {{instance}}',
        },
      ],
    ),
    linePanel(
      {
        ...face,
        title: 'Events per flush',
        help: 'More events in fewer flushes is what grouping buys: if this rises while p95 flush stays, the strategy works.',
        unit: 'short',
        decimals: 1,
      },
      [{ expr: mean(sc.METRIC_FLUSH_EVENTS, PANEL, [LABEL.boundary]), legend: BY_BOUNDARY }],
    ),
    linePanel(
      {
        ...face,
        title: 'Flushes per second, and seconds in them',
        help: 'Time in flushes that grows with their number is the cost of each append, so group; at a constant number it is the storage.',
        unit: 'short',
      },
      [
        { expr: orQuiet(rate(sc.METRIC_FLUSH_DURATION, PANEL, [], '_count'), PANEL), legend: 'flushes per second' },
        {
          expr: orQuiet(rate(sc.METRIC_FLUSH_DURATION, PANEL, [], '_sum'), PANEL),
          legend: 'seconds in flushes per second',
        },
      ],
    ),
  ]
}
