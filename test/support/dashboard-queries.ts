/** Every query of the dashboards and rules, put to a real Prometheus. */
import { ALERTS } from '../../dashboards/alerts.ts'
import { incident } from '../../dashboards/incident.ts'
import { latency } from '../../dashboards/latency.ts'
import type { DashboardJson } from '../../dashboards/lint.ts'
import { overview } from '../../dashboards/overview.ts'
import { expand, type Macros } from '../../dashboards/promql.ts'
import { RECORDINGS } from '../../dashboards/rules.ts'
import * as sc from '../../src/semconv.ts'
import type { PrometheusApi } from './prometheus-server.ts'

/** One scrape a second stands in for one a minute. */
export const MACROS: Macros = { rateInterval: '30s', range: '5m', interval: '5s', intervalMs: 5_000 }

/**
 * Queries of panels, annotations, variables and rules that answer nothing, and exemplar queries without an exemplar.
 * @param collected - the job, where metrics came through the collector and others are there, too.
 */
export async function withoutData(
  server: PrometheusApi,
  from: number,
  to: number,
  collected?: { readonly job: string },
): Promise<string[]> {
  const empty: string[] = []
  // The endpoint alone has the metrics of the process and exemplars of barriers; the rule file is loaded beside it.
  const isThere = (expr: string) => collected === undefined || !/\b(nodejs|process)_/.test(expr)
  for (const dashboard of [overview(), latency(), incident()] as (DashboardJson & { title: string })[]) {
    for (const { name = '', expr = '' } of dashboard.annotations?.list ?? []) {
      if (!isThere(expr)) continue
      const results = await server.queryRange(expand(expr, MACROS, collected), from - 10, to, 1)
      if (results.length === 0) empty.push(`${dashboard.title}: annotation ${name}`)
    }
    for (const { name, type, query } of dashboard.templating?.list ?? []) {
      if (type !== 'query') continue
      const [, selector = '', label = ''] =
        /^label_values\((.*), (\w+)\)$/.exec((query as { query: string }).query) ?? []
      const values = await server.query(`count by (${label}) (${expand(selector, MACROS, collected)})`)
      if (values.length === 0 || values.some(({ metric }) => metric[label] === undefined))
        empty.push(`${dashboard.title}: variable ${name}`)
    }
    for (const panel of dashboard.panels ?? []) {
      for (const target of panel.targets ?? []) {
        const { refId, expr = '', instant, exemplar } = target as typeof target & { exemplar?: boolean }
        if (!isThere(expr)) continue
        const where = `${dashboard.title}: ${panel.title} ${refId}`
        const query = expand(expr, MACROS, collected)
        const results = instant === true ? await server.query(query) : await server.queryRange(query, from, to, 1)
        const values = results.flatMap(({ value, values: list }) => list ?? (value === undefined ? [] : [value]))
        if (!values.some(([, value]) => Number.isFinite(Number(value)))) empty.push(where)
        if (
          exemplar === true &&
          collected === undefined &&
          (await server.exemplars(query, from, to)).every(({ labels }) => labels[sc.EXEMPLAR_TRACE_ID] === undefined)
        ) {
          empty.push(`${where}: exemplars`)
        }
      }
    }
  }
  for (const { name, of } of ALERTS) if ((await server.query(of)).length === 0) empty.push(`alert ${name}`)
  if (collected !== undefined) return empty
  for (const { record } of RECORDINGS) if ((await server.query(record)).length === 0) empty.push(`recording ${record}`)
  return empty
}
