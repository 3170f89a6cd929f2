/** PromQL put together from the names of the telemetry contract: what the dashboards and the alert rules ask. */
import * as sc from '../src/semconv.ts'

/** OpenTelemetry name of an instrument of the contract. */
export type Instrument = keyof typeof sc.INSTRUMENTS

/** Label names: attribute keys as Prometheus spells them. */
export const LABEL = {
  boundary: labelOf(sc.ATTR_BOUNDARY),
  outcome: labelOf(sc.ATTR_OUTCOME),
  flushOutcome: labelOf(sc.ATTR_FLUSH_OUTCOME),
  strategy: labelOf(sc.ATTR_STRATEGY),
  recovery: labelOf(sc.ATTR_RECOVERY),
  errorType: labelOf(sc.ATTR_ERROR_TYPE),
} as const

/** Metrics of the process itself that the Prometheus plugin adds; there are none on the OTLP path. */
export const PROCESS = {
  started: sc.FAMILY_PROCESS_START,
  loopLag: sc.FAMILIES_EVENT_LOOP_LAG.p99,
  gc: sc.FAMILY_GC_DURATION,
} as const

/** p99 wait at a barrier that is still fine, in seconds; a bucket bound, so that the comparison is exact. */
export const BUDGET_SECONDS = 0.25
/** Age at which an open barrier counts as waiting, in seconds; the policy's log names it at the same age. */
export const OVERDUE_SECONDS = 5
/** Age at which an open barrier counts as hung, in seconds. */
export const HUNG_SECONDS = 30
/** Age of an event outside the durable log at which a crash would cost real work, in seconds. */
export const UNFLUSHED_SECONDS = 300

/** Which series a query looks at, and over what time. */
export interface Scope {
  /** Label matchers for every series. */
  readonly matchers: readonly string[]
  /** Whether the dashboard's boundary and strategy variables apply. */
  readonly variables: boolean
  /** Window of rates. */
  readonly window: string
}

/** A dashboard panel over time. */
export const PANEL: Scope = {
  matchers: ['job=~"$job"', 'instance=~"$instance"'],
  variables: true,
  window: '$__rate_interval',
}
/** A number for the whole time range of the dashboard. */
export const RANGE: Scope = { ...PANEL, window: '$__range' }

/** Series of one instrument, `part` being `_bucket`, `_sum` or `_count` of a histogram. */
export function series(name: Instrument, scope: Scope, part = '', matchers: readonly string[] = []): string {
  const { prometheus, attributes } = sc.INSTRUMENTS[name]
  const own = (attributes as readonly string[]).flatMap((attribute) => {
    if (!scope.variables) return []
    if (attribute === sc.ATTR_BOUNDARY) return [`${LABEL.boundary}=~"$boundary"`]
    return attribute === sc.ATTR_STRATEGY ? [`${LABEL.strategy}=~"$strategy"`] : []
  })
  const all = [...scope.matchers, ...own, ...matchers]
  return all.length === 0 ? prometheus + part : `${prometheus}${part}{${all.join(', ')}}`
}

/** Series of a process metric; no boundary and no strategy there. */
export function processSeries(name: string, scope: Scope): string {
  return scope.matchers.length === 0 ? name : `${name}{${scope.matchers.join(', ')}}`
}

/** `sum by (…)` of the rate of a counter or of a histogram's part. */
export function rate(
  name: Instrument,
  scope: Scope,
  by: readonly string[] = [],
  part = '',
  matchers: readonly string[] = [],
): string {
  return `${sum(by)}(rate(${series(name, scope, part, matchers)}[${scope.window}]))`
}

/** A series unseen for this long before the window is young; shorter gaps are Prometheus' own. */
const YOUNG = '1h'

/**
 * How often a counter counted in the window, the first scrape of a young series included: a process that fails before
 * it is first scraped, and recovery at start-up, would otherwise never be seen.
 */
export function counted(
  name: Instrument,
  scope: Scope,
  by: readonly string[] = [],
  matchers: readonly string[] = [],
): string {
  const of = series(name, scope, '', matchers)
  const { window } = scope
  const born = `min_over_time(${of}[${window}]) unless last_over_time(${of}[${YOUNG}] offset ${window})`
  // The extra label keeps both apart for `or`; the sum drops it again.
  return `${sum(by)}(increase(${of}[${window}]) or label_replace(${born}, "first", "scrape", "", ""))`
}

/** Quantile of a histogram, `le` kept. */
export function quantile(
  q: number,
  name: Instrument,
  scope: Scope,
  by: readonly string[] = [],
  matchers: readonly string[] = [],
): string {
  return `histogram_quantile(${q}, ${rate(name, scope, [...by, 'le'], '_bucket', matchers)})`
}

/** Mean of a histogram's observations. */
export function mean(
  name: Instrument,
  scope: Scope,
  by: readonly string[] = [],
  matchers: readonly string[] = [],
): string {
  return `${rate(name, scope, by, '_sum', matchers)} / ${rate(name, scope, by, '_count', matchers)}`
}

/**
 * Zero while the policy reports, nothing when it does not: a quiet system reads as quiet, a silent one as missing.
 * @param by - the one label of the query; all boundaries get their zero, any other label gets one called `none`.
 */
export function orQuiet(query: string, scope: Scope, by?: string): string {
  if (by === LABEL.boundary) return `${query} or 0 * sum by (${by}) (${series(sc.METRIC_ACTIVE, scope)})`
  const zero = `0 * sum(${series(sc.METRIC_POLICY_ACTIVE, scope)})`
  return `${query} or on () ${by === undefined ? `(${zero})` : `label_replace(${zero}, "${by}", "none", "", "")`}`
}

/** The barriers at which an agent can wait at all. */
export const WAITING = [`${LABEL.boundary}!="turn"`]

/** Seconds waited per second. Barriers end late or never, so those open for long count as waiting now. */
export function waiting(scope: Scope, by: readonly string[] = []): string {
  const open = series(sc.METRIC_ACTIVE, scope, '', WAITING)
  const overdue = `${series(sc.METRIC_OLDEST_AGE, scope)} > ${OVERDUE_SECONDS}`
  const ended = rate(sc.METRIC_BARRIER_DURATION, scope, by, '_sum', WAITING)
  return `(${ended} + (${sum(by)}(${open} and on (${PROCESS_LABELS.join(', ')}) ${overdue}) or 0 * ${sum(by)}(${open})))`
}

/** States of one agent process, worst first; the first that applies is shown. */
export const STATES = [
  {
    value: 8,
    text: 'NO POLICY',
    color: 'dark-red',
    when: (scope: Scope) => `${worst(sc.METRIC_POLICY_ACTIVE, scope)} == 0`,
  },
  {
    value: 7,
    text: 'NOT DURABLE',
    color: 'red',
    when: (scope: Scope) => `${worst(sc.METRIC_CONSECUTIVE_FAILURES, scope)} > 0`,
  },
  {
    value: 6,
    text: 'HUNG',
    color: 'red',
    when: (scope: Scope) => `${worst(sc.METRIC_OLDEST_AGE, scope)} > ${HUNG_SECONDS}`,
  },
  {
    value: 5,
    text: 'FAILED LATELY',
    color: 'orange',
    when: (scope: Scope) => `${grew(sc.METRIC_REJECTIONS, scope)} > 0`,
  },
  { value: 4, text: 'UNGUARDED', color: 'orange', when: (scope: Scope) => `${grew(sc.METRIC_UNGUARDED, scope)} > 0` },
  {
    value: 3,
    text: 'WAITING',
    color: 'yellow',
    when: (scope: Scope) => `${worst(sc.METRIC_OLDEST_AGE, scope)} > ${OVERDUE_SECONDS}`,
  },
  {
    value: 2,
    text: 'DURABLE, SLOW',
    color: 'yellow',
    when: (scope: Scope) =>
      `${quantile(0.99, sc.METRIC_BARRIER_DURATION, scope, PROCESS_LABELS, WAITING)} > ${BUDGET_SECONDS}`,
  },
  {
    value: 1,
    text: 'DURABLE',
    color: 'green',
    when: (scope: Scope) => `${rate(sc.METRIC_BARRIER_DURATION, scope, PROCESS_LABELS, '_count')} > 0`,
  },
  { value: 0, text: 'QUIET', color: 'blue', when: (scope: Scope) => worst(sc.METRIC_POLICY_ACTIVE, scope) },
] as const

/** Shown for all processes together when there is none. */
export const NO_AGENT = { value: 9, text: 'NO AGENT', color: 'dark-red' } as const

/** Labels that tell one agent process from another. */
export const PROCESS_LABELS = ['job', 'instance'] as const

/** State of each agent process as a number of {@link STATES}. */
export function state(scope: Scope): string {
  // Dropped, not kept as zero: `or` takes the first that is there.
  return STATES.map(({ value, when }) => `0 * (${when(scope)}) + ${value}`).join('\nor ')
}

/** Prometheus' spelling of an attribute key. */
function labelOf(attribute: string): string {
  return attribute.replaceAll('.', '_')
}

function sum(by: readonly string[]): string {
  return by.length === 0 ? 'sum' : `sum by (${by.join(', ')}) `
}

function worst(name: Instrument, scope: Scope): string {
  return `max by (${PROCESS_LABELS.join(', ')}) (${series(name, scope)})`
}

function grew(name: Instrument, scope: Scope): string {
  return counted(name, scope, PROCESS_LABELS)
}
