/** First row of the overview: is it durable? */
import * as sc from '../../src/semconv.ts'
import { type Face, stateMappings, statePanel, statPanel, ZERO } from '../panels.ts'
import {
  counted,
  HUNG_SECONDS,
  NO_AGENT,
  orQuiet,
  OVERDUE_SECONDS,
  PANEL,
  RANGE,
  series,
  state,
  STATES,
  UNFLUSHED_SECONDS,
} from '../queries.ts'

const STATE_STEPS: Face['steps'] = [NO_AGENT, ...STATES]
  .toReversed()
  .map(({ value, color }, index) => [index === 0 ? null : value, color])

/** The state of all and of each, and what decides it. */
export function durable() {
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
          [OVERDUE_SECONDS, 'yellow'],
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
