/** Rules that keep a dashboard alive on somebody else's Grafana, as checks over its JSON. */
import { INSTRUMENTS } from '../src/semconv.ts'
import { examine, examineLabelValues, type QueryFacts } from './promql.ts'
import { LABEL, PROCESS } from './queries.ts'

/** A dashboard as Grafana stores it; only what the rules read. */
export interface DashboardJson {
  readonly id?: unknown
  readonly uid?: unknown
  readonly __inputs?: unknown
  readonly panels?: readonly PanelJson[]
  readonly templating?: { readonly list?: readonly VariableJson[] }
  readonly annotations?: { readonly list?: readonly QueryJson[] }
}

interface Source {
  readonly type?: string
  readonly uid?: string
}

interface QueryJson {
  readonly name?: string
  readonly refId?: string
  readonly expr?: string
  readonly interval?: string
  readonly step?: string
  readonly instant?: boolean
  readonly datasource?: Source
}

interface VariableJson {
  readonly name: string
  readonly type: string
  readonly query?: unknown
  readonly includeAll?: boolean
  readonly multi?: boolean
  readonly datasource?: Source
}

interface PanelJson {
  readonly id?: number
  readonly type: string
  readonly title?: string
  readonly description?: string
  readonly datasource?: Source
  readonly gridPos?: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly fieldConfig?: { readonly defaults?: { readonly unit?: string; readonly thresholds?: unknown } }
  readonly targets?: readonly QueryJson[]
}

/** Every metric a query may read. */
export const KNOWN_METRICS: ReadonlySet<string> = new Set([
  ...Object.values(INSTRUMENTS).flatMap(({ kind, prometheus }) =>
    kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => prometheus + part) : [prometheus],
  ),
  PROCESS.started,
  PROCESS.loopLag,
  ...['_bucket', '_sum', '_count'].map((part) => PROCESS.gc + part),
])

/** Every label a query may match or group by: the contract's, Prometheus' own, and the mark of a first scrape. */
const KNOWN_LABELS: ReadonlySet<string> = new Set([...Object.values(LABEL), 'job', 'instance', 'le', 'first'])

const REQUIRED_VARIABLES = ['job', 'instance', 'boundary', 'strategy']
/** Shortest step, in seconds, that holds four scrapes a minute apart in `$__rate_interval`. */
const MIN_STEP_SECONDS = 60

/**
 * Check a dashboard.
 * @returns one line for each finding: where, and which rule; empty when it is sound.
 */
export function lint(dashboard: DashboardJson): readonly string[] {
  return [...ofWhole(dashboard), ...ofVariables(dashboard), ...ofAnnotations(dashboard), ...ofPanels(dashboard)]
}

/** Check one query; `where` begins each finding. */
export function lintQuery(
  where: string,
  { errors, metrics, labels, rawCounters, quantilesWithoutLe }: QueryFacts,
): string[] {
  return [
    ...errors.map((position) => `${where}: does not parse at ${position}`),
    ...metrics.filter((name) => !KNOWN_METRICS.has(name)).map((name) => `${where}: unknown metric ${name}`),
    // Grouping by a label that nothing has still answers, with everything in one.
    ...labels.filter((name) => !KNOWN_LABELS.has(name)).map((name) => `${where}: unknown label ${name}`),
    ...rawCounters.map((name) => `${where}: counter ${name} outside rate or increase`),
    ...(quantilesWithoutLe > 0 ? [`${where}: quantile without le`] : []),
  ]
}

function* ofWhole(dashboard: DashboardJson): Generator<string> {
  if (dashboard.id !== undefined && dashboard.id !== null) yield 'dashboard: has an id, which belongs to one Grafana'
  if (typeof dashboard.uid !== 'string' || !/^[\w-]{1,40}$/.test(dashboard.uid)) yield 'dashboard: needs a stable uid'
  if (dashboard.__inputs !== undefined) yield 'dashboard: has inputs, which provisioning does not resolve'
  const declared = new Set((dashboard.templating?.list ?? []).map(({ name }) => name))
  const used = new Set(
    [...JSON.stringify(dashboard).matchAll(/\$(?:\{(\w+)[^}]*\}|(\w+))/g)].map(
      ([, braced, bare]) => braced ?? bare ?? '',
    ),
  )
  for (const name of used)
    if (!name.startsWith('__') && !declared.has(name)) yield `dashboard: unresolved variable ${name}`
  // In links into Explore the data source is a plain string, percent-encoded or not.
  const links = [...JSON.stringify(dashboard).matchAll(/datasource(?:%22|\\")(?:%3A|:)(?:%22|\\")([^"%\\]+)/g)]
  for (const [, uid = ''] of links) if (!uid.startsWith('${')) yield `dashboard: literal data source ${uid} in a link`
}

function* ofVariables({ templating }: DashboardJson): Generator<string> {
  const variables = templating?.list ?? []
  const sources = variables.filter(({ type, query }) => type === 'datasource' && query === 'prometheus')
  if (sources.length !== 1) yield `variables: need one Prometheus data source variable, found ${sources.length}`
  for (const name of REQUIRED_VARIABLES) {
    const variable = variables.find((candidate) => candidate.name === name)
    if (variable === undefined) yield `variables: no ${name}`
    else if (variable.includeAll !== true || variable.multi !== true)
      yield `variable ${name}: needs All and many values`
  }
  for (const { name, type, query, datasource } of variables) {
    if (type !== 'query') continue
    yield* ofSource(`variable ${name}`, datasource)
    // Which series there are is all that is asked of a counter here.
    yield* lintQuery(`variable ${name}`, { ...examineLabelValues(queryText(query)), rawCounters: [] })
  }
}

function* ofAnnotations({ annotations }: DashboardJson): Generator<string> {
  for (const { name = '?', expr = '', step, datasource } of annotations?.list ?? []) {
    const where = `annotation ${name}`
    yield* ofSource(where, datasource)
    if (seconds(step) < MIN_STEP_SECONDS) yield `${where}: minimum step below ${MIN_STEP_SECONDS} s`
    yield* lintQuery(where, examine(expr))
    if (fixedWindow(expr)) yield `${where}: fixed window in a rate`
  }
}

function* ofPanels({ panels = [] }: DashboardJson): Generator<string> {
  const ids = new Set<unknown>()
  for (const panel of panels) {
    const where = `panel ${panel.title ?? '?'}`
    if (panel.id === undefined || ids.has(panel.id)) yield `${where}: needs an id of its own`
    ids.add(panel.id)
    if (panels.some((other) => other !== panel && overlap(panel, other))) yield `${where}: overlaps another panel`
    if ((panel.title ?? '') === '') yield `${where}: no title`
    if (panel.type === 'row') continue
    if ((panel.description ?? '') === '') yield `${where}: no description`
    if (panel.type === 'text') continue
    yield* ofSource(where, panel.datasource)
    if ((panel.fieldConfig?.defaults?.unit ?? '') === '') yield `${where}: no unit`
    if (panel.fieldConfig?.defaults?.thresholds === undefined) yield `${where}: no thresholds`
    const refIds = new Set((panel.targets ?? []).map(({ refId }) => refId))
    if (refIds.size === 0 || refIds.size !== panel.targets?.length) yield `${where}: needs queries with a refId each`
    for (const target of panel.targets ?? []) yield* ofTarget(`${where} ${target.refId ?? '?'}`, target)
  }
}

function* ofTarget(where: string, { expr = '', interval, instant, datasource }: QueryJson): Generator<string> {
  yield* ofSource(where, datasource)
  yield* lintQuery(where, examine(expr))
  if (fixedWindow(expr)) yield `${where}: fixed window in a rate`
  if (expr.includes('$__range') && instant !== true)
    yield `${where}: $__range over time, where $__rate_interval belongs`
  // The panel's own interval does not reach $__rate_interval, only the query's does.
  if (seconds(interval) < MIN_STEP_SECONDS) yield `${where}: minimum step below ${MIN_STEP_SECONDS} s`
}

function* ofSource(where: string, source: Source | undefined): Generator<string> {
  if (source?.type !== 'prometheus' || source.uid !== '${datasource}') yield `${where}: not on the data source variable`
}

/** A `rate(x[5m])`: with one scrape a minute or a wide range it holds too little or too much. */
function fixedWindow(expr: string): boolean {
  return /\b(?:rate|increase|irate|delta|changes|min_over_time)\([^[]*\[\d/.test(expr)
}

function queryText(query: unknown): string {
  return typeof query === 'string' ? query : String((query as { query?: unknown } | undefined)?.query ?? '')
}

function seconds(duration: string | undefined): number {
  const [, number = '0', unit = 's'] = /^(\d+)([smh])$/.exec(duration ?? '') ?? []
  return Number(number) * { s: 1, m: 60, h: 3_600 }[unit as 's' | 'm' | 'h']
}

function overlap({ gridPos: a }: PanelJson, { gridPos: b }: PanelJson): boolean {
  return a !== undefined && b !== undefined && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}
