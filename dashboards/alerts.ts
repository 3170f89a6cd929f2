/** What the alerts watch, when they fire, and what to do then. As data, so longer than a file should be. */
import * as sc from '../src/semconv.ts'
import {
  BUDGET_SECONDS,
  counted,
  HUNG_SECONDS,
  LABEL,
  PROCESS_LABELS,
  quantile,
  series,
  UNFLUSHED_SECONDS,
  WAITING,
  type Instrument,
  type Scope,
} from './queries.ts'

/** One alert. */
export interface Alert {
  readonly name: string
  readonly severity: 'warning' | 'critical'
  /** What it looks at: a query with an answer as long as agents report. */
  readonly of: string
  /** When that is wrong: {@link of} with its condition. */
  readonly expr: string
  /** How long it must be true; the Prometheus spelling. */
  readonly for: string
  /** One line, as a template. */
  readonly summary: string
  /** What it means and what to do. */
  readonly runbook: string
}

/** Series of every agent, over the window that alerts look at. */
export const RULE: Scope = { matchers: [], variables: false, window: '5m' }
const FLUSH_FAILURES = 3
const worst = (name: Instrument) => `max by (${PROCESS_LABELS.join(', ')}) (${series(name, RULE)})`
const WHO = '{{ $labels.job }} {{ $labels.instance }}'
const BOUNDARY = `{{ $labels.${LABEL.boundary} }}`
const STRATEGY = `{{ $labels.${LABEL.strategy} }}`

const DEFINITIONS: readonly (Omit<Alert, 'expr'> & { readonly is: string })[] = [
  {
    name: 'DshCheckpointRejected',
    severity: 'warning',
    of: counted(sc.METRIC_REJECTIONS, RULE, [...PROCESS_LABELS, LABEL.boundary, LABEL.errorType]),
    is: '> 0',
    for: '0m',
    summary: `${WHO}: ${BOUNDARY} barrier failed, {{ $labels.${LABEL.errorType} }}`,
    runbook:
      'The session log could not be made durable, so a request, a tool call or a step was stopped before it ran (at turn: a last write failed, nothing was stopped). Nothing was lost that the agent had acted on. Read the cause: ENOSPC and EDQUOT, free space; EROFS, EACCES and EPERM, mount or ownership; EIO, the disk; timeout, a stall longer than timeoutMs; unconfirmed, no persistence backend. The next barrier writes what is pending; the agent does not retry the turn by itself.',
  },
  {
    name: 'DshCheckpointNotDurable',
    severity: 'critical',
    of: worst(sc.METRIC_CONSECUTIVE_FAILURES),
    is: `>= ${FLUSH_FAILURES}`,
    for: '0m',
    summary: `${WHO}: {{ $value }} flushes of one session failed in a row`,
    runbook:
      'Writes of at least one session fail now, one after the other: its agent stands still at every barrier. Repair the storage first (see DshCheckpointRejected for the causes). Do not restart the process before that: what it has not written lives only in its memory.',
  },
  {
    name: 'DshCheckpointHung',
    severity: 'critical',
    of: worst(sc.METRIC_OLDEST_AGE),
    is: `> ${HUNG_SECONDS}`,
    for: '0m',
    summary: `${WHO}: a barrier is open for {{ $value }} s`,
    runbook:
      'A flush neither succeeds nor fails, typically a network file system that went away. The agent waits, and can still be cancelled; a call cancelled here never ran. The log of the process names session, turn, step and tool ("checkpoint ... is open for"). Bring the storage back, or cancel the turn; set timeoutMs to have such barriers rejected by themselves.',
  },
  {
    name: 'DshCheckpointUnflushed',
    severity: 'warning',
    of: worst(sc.METRIC_UNFLUSHED_AGE),
    is: `> ${UNFLUSHED_SECONDS}`,
    for: '0m',
    summary: `${WHO}: events are not durable for {{ $value }} s`,
    runbook:
      'An event was appended that long ago and no flush since made it durable: a crash now could lose it. With failures or a hung barrier beside it, handle those first. Alone it is one very long answer or tool call, or a strategy that skips barriers: look at which process it is and raise the limit if its turns are meant to be that long.',
  },
  {
    name: 'DshCheckpointUnguarded',
    severity: 'warning',
    of: counted(sc.METRIC_UNGUARDED, { ...RULE, window: '15m' }, [...PROCESS_LABELS, LABEL.boundary, LABEL.strategy]),
    is: '> 0',
    for: '0m',
    summary: `${WHO}: ${BOUNDARY} released without a durable log (strategy ${STRATEGY})`,
    runbook:
      'A request or a tool call left the machine although its log was not known to be durable: after a crash nobody could tell. Either the configuration allows it (allowUnguarded: true with a strategy that skips or starts), or no persistence backend confirmed the flush (see the log; requireConfirmed: true turns that into a rejection). If neither is intended, unload the strategy: the default always waits.',
  },
  {
    name: 'DshCheckpointStrategyFault',
    severity: 'warning',
    of: counted(sc.METRIC_STRATEGY_FAULTS, { ...RULE, window: '15m' }, [...PROCESS_LABELS, LABEL.strategy]),
    is: '> 0',
    for: '0m',
    summary: `${WHO}: strategy ${STRATEGY} threw or answered nonsense`,
    runbook:
      'The strategy plugin is broken for some barriers. Durability is not affected, each such barrier flushed instead, but you pay for a strategy and do not get it. The log of the process has the error. Fix or unload the plugin; unloading brings the default strategy back.',
  },
  {
    name: 'DshCheckpointSlow',
    severity: 'warning',
    of: quantile(0.99, sc.METRIC_BARRIER_DURATION, RULE, ['job', LABEL.boundary], WAITING),
    is: `> ${BUDGET_SECONDS}`,
    for: '10m',
    summary: `{{ $labels.job }}: p99 wait at ${BOUNDARY} is {{ $value }} s`,
    runbook: `Agents wait longer than ${BUDGET_SECONDS} s at one barrier in a hundred, for ten minutes now. Open the dashboard "Checkpoint latency tuning": flush high as well, the storage is slow; event loop lag high as well, the process is busy; barrier well above flush, lower the strategy's delay. The budget is a bucket bound; choose another from the list of buckets when you change it.`,
  },
  {
    name: 'DshCheckpointAgentGone',
    severity: 'warning',
    of: `max by (${PROCESS_LABELS.join(', ')}) (last_over_time(${series(sc.METRIC_POLICY_ACTIVE, RULE)}[1h]))`,
    is: `> 0 unless ${worst(sc.METRIC_POLICY_ACTIVE)}`,
    for: '5m',
    summary: `${WHO}: reported within the last hour, and does no more`,
    runbook:
      'The process died, hangs, or cannot be reached; it did not say goodbye (over OTLP a policy that is unloaded in order reports 0 first; a scraped process that is stopped on purpose looks like a dead one until an hour has passed: silence it for planned stops). See whether it runs. After a crash, resume its sessions: recovery answers calls without a result, and recovered_calls counts them. Behind a collector it takes metric_expiration longer.',
  },
  {
    name: 'DshCheckpointNoPolicy',
    severity: 'critical',
    of: `1 - ${worst(sc.METRIC_POLICY_ACTIVE)}`,
    is: '> 0',
    for: '2m',
    summary: `${WHO}: runs without a checkpoint policy`,
    runbook:
      'The process reports, and its checkpoint policy is unloaded: nothing waits for the session log. A reload takes seconds and does not get here. Look for a failed reload or for a persistence backend that is gone, which unloads the policy too, and mount it again or stop the process.',
  },
  {
    name: 'DshCheckpointTelemetryGone',
    severity: 'critical',
    of: series(sc.METRIC_POLICY_ACTIVE, RULE),
    is: 'absent',
    for: '15m',
    summary: 'No agent reports checkpoint metrics',
    runbook:
      'Not one process reports, so none of the other alerts can fire. Check, in this order: do agents run; does Prometheus scrape them or the collector (Status, Targets); does the collector receive and export; do the names match (dsh_checkpoint_policy_active). Where agents run only now and then, leave this rule out.',
  },
]

/** All alerts; each expression answers nothing, or a value above zero, so that it suits Grafana's threshold too. */
export const ALERTS: readonly Alert[] = DEFINITIONS.map(({ is, ...alert }) => ({
  ...alert,
  expr: is === 'absent' ? `absent(${alert.of})` : `${alert.of} ${is}`,
}))
