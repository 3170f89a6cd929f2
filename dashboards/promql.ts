/** What can be said about a PromQL query without running it. */
import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'

/** Facts of one query. */
export interface QueryFacts {
  /** Positions at which the query does not parse. */
  readonly errors: readonly number[]
  /** Metric names it reads, sorted. */
  readonly metrics: readonly string[]
  /** Labels it matches or groups by, sorted. */
  readonly labels: readonly string[]
  /** Counters (`_total`) read without `rate` or `increase` around them. */
  readonly rawCounters: readonly string[]
  /** Quantiles whose inner aggregation drops `le`. */
  readonly quantilesWithoutLe: number
}

/** Values that stand in for Grafana's macros where a query is parsed or run outside Grafana. */
export interface Macros {
  readonly rateInterval: string
  readonly range: string
  readonly interval: string
  readonly intervalMs: number
}

const SAMPLE: Macros = { rateInterval: '4m', range: '3h', interval: '1m', intervalMs: 60_000 }

/**
 * Replace Grafana's macros and variables.
 * @param variables - regular expression for a variable by name; `.*` for the others, as "All" is.
 */
export function expand(
  query: string,
  macros: Macros = SAMPLE,
  variables: Readonly<Record<string, string>> = {},
): string {
  return query
    .replaceAll('$__rate_interval', macros.rateInterval)
    .replaceAll('$__range', macros.range)
    .replaceAll('$__interval_ms', String(macros.intervalMs))
    .replaceAll('$__interval', macros.interval)
    .replaceAll(/\$(\w+)/g, (whole, name: string) => (name.startsWith('__') ? whole : (variables[name] ?? '.*')))
}

/** Parse a query, macros and all. */
export function examine(query: string): QueryFacts {
  const text = expand(query)
  const errors: number[] = []
  const metrics = new Set<string>()
  const labels = new Set<string>()
  const rawCounters = new Set<string>()
  let quantilesWithoutLe = 0
  parser.parse(text).iterate({
    enter({ node, type, from }) {
      // The parser recovers from anything, so a broken query shows only in these nodes.
      if (type.isError) errors.push(from)
      else if (type.name === 'LabelName') labels.add(textOf(node, text))
      else if (type.name === 'VectorSelector') {
        const name = textOf(node.getChild('Identifier'), text)
        metrics.add(name)
        if (name.endsWith('_total') && !isCounted(node, text)) rawCounters.add(name)
      } else if (
        type.name === 'FunctionCall' &&
        functionOf(node, text) === 'histogram_quantile' &&
        !keepsLe(node, text)
      ) {
        quantilesWithoutLe += 1
      }
    },
  })
  return {
    errors,
    metrics: [...metrics].toSorted(),
    labels: [...labels].toSorted(),
    rawCounters: [...rawCounters].toSorted(),
    quantilesWithoutLe,
  }
}

/** Names of metrics in a `label_values(metric{…}, label)` of a variable. */
export function examineLabelValues(query: string): QueryFacts {
  const [, selector = query] = /^label_values\((.*),\s*\w+\)$/.exec(query) ?? []
  return examine(selector)
}

/** Under `rate` or `increase`, or in the idiom that counts the first scrape: `min_over_time(x) unless last_over_time(x)`. */
function isCounted(selector: SyntaxNode, text: string): boolean {
  for (let node = selector.parent; node !== null; node = node.parent) {
    if (node.name !== 'FunctionCall') continue
    const name = functionOf(node, text)
    if (name === 'rate' || name === 'increase') return true
    if (name === 'min_over_time' || name === 'last_over_time') return isUnderUnless(node)
  }
  return false
}

function isUnderUnless(call: SyntaxNode): boolean {
  let { parent } = call
  while (parent?.name === 'ParenExpr' || parent?.name === 'OffsetExpr') ({ parent } = parent)
  return parent?.getChild('Unless') != null
}

function keepsLe(call: SyntaxNode, text: string): boolean {
  const aggregate = call.getChild('FunctionCallBody')?.getChild('AggregateExpr')
  // Without an aggregation nothing was dropped.
  if (aggregate == null) return true
  const modifier = aggregate.getChild('AggregateModifier')
  const labels =
    modifier
      ?.getChild('GroupingLabels')
      ?.getChildren('LabelName')
      .map((label) => textOf(label, text)) ?? []
  return (modifier?.getChild('By') != null) === labels.includes('le') && modifier != null
}

function functionOf(call: SyntaxNode, text: string): string {
  return textOf(call.getChild('FunctionIdentifier'), text)
}

function textOf(node: SyntaxNode | null | undefined, text: string): string {
  return node == null ? '' : text.slice(node.from, node.to)
}
