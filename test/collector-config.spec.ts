/** The shipped collector files against themselves, the telemetry contract and the collector that the tests build. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import * as sc from '../src/semconv.ts'

interface CollectorConfig {
  receivers: Record<string, unknown>
  processors: Record<string, Record<string, unknown>>
  connectors: Record<
    string,
    { histogram?: { unit: string; explicit: { buckets: string[] } }; dimensions?: { name: string }[] }
  >
  exporters: Record<string, { sending_queue?: { batch?: object } }>
  extensions: Record<string, unknown>
  service: {
    extensions: string[]
    pipelines: Record<string, { receivers: string[]; processors: string[]; exporters: string[] }>
  }
}

const root = join(import.meta.dirname, '..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const BASE = 'otel-collector.yaml'
const SAMPLING = 'otel-collector.tail-sampling.yaml'

/** As the collector merges its --config files: maps by key, lists replaced. */
function merge(base: unknown, over: unknown): unknown {
  const isMap = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isMap(base) || !isMap(over)) return over ?? base
  return Object.fromEntries(
    [...new Set([...Object.keys(base), ...Object.keys(over)])].map((key) => [key, merge(base[key], over[key])]),
  )
}
const base = parse(textOf(BASE)) as CollectorConfig
const sampling = merge(base, parse(textOf(SAMPLING))) as CollectorConfig
const variants: [string, CollectorConfig][] = [
  [BASE, base],
  [`${BASE} with ${SAMPLING}`, sampling],
]

test.each(variants)('[D24] %s defines what it uses and uses what it defines', (_name, { service, ...config }) => {
  const pipelines = Object.values(service.pipelines)
  const used = (part: 'receivers' | 'processors' | 'exporters') =>
    new Set(pipelines.flatMap((pipeline) => pipeline[part]))
  const connectors = Object.keys(config.connectors)
  const sorted = (names: Iterable<string>) => [...new Set(names)].sort()
  expect(sorted([...used('receivers')].filter((name) => !connectors.includes(name)))).toEqual(
    sorted(Object.keys(config.receivers)),
  )
  expect(sorted(used('processors'))).toEqual(sorted(Object.keys(config.processors)))
  expect(sorted([...used('exporters')].filter((name) => !connectors.includes(name)))).toEqual(
    sorted(Object.keys(config.exporters)),
  )
  expect(sorted(service.extensions)).toEqual(sorted(Object.keys(config.extensions)))
  for (const name of connectors) {
    expect(used('exporters')).toContain(name)
    expect(used('receivers')).toContain(name)
  }
})

test.each(variants)(
  '[D24] %s limits memory first and scrubs before anything leaves',
  (_name, { service, processors }) => {
    for (const { processors: chain } of Object.values(service.pipelines)) {
      expect(chain[0]).toBe('memory_limiter')
      expect(chain[1]).toMatch(/^redaction/)
    }
    const limiter = processors['memory_limiter'] as { limit_mib: number; spike_limit_mib: number }
    expect(limiter.spike_limit_mib).toBeLessThan(limiter.limit_mib)
    expect(limiter.limit_mib).toBeLessThan(512)
  },
)

test.each(variants)('%s batches in the queues of its exporters', (_name, { exporters, processors }) => {
  for (const exporter of Object.values(exporters)) expect(exporter.sending_queue?.batch).toBeDefined()
  expect(Object.keys(processors)).not.toContain('batch')
})

test('every attribute of our spans passes the scrub, and none that holds content', () => {
  const allowed = base.processors['redaction']?.['allowed_keys'] as string[]
  const ours = Object.entries(sc).flatMap(([key, value]) => (key.startsWith('ATTR_') ? [value as string] : []))
  for (const attribute of ours) expect(allowed).toContain(attribute)
  for (const content of allowed) expect(content).not.toMatch(/message|prompt|content|argument|instruction|command/)
  expect(base.processors['redaction']?.['allow_all_keys']).toBe(false)
})

test('span metrics use the policy’s buckets, in seconds, and its closed attributes', () => {
  const { histogram, dimensions } = base.connectors['span_metrics'] ?? {}
  const seconds = (text: string) => {
    const [, value = '', unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
    return Number(`${value}e${{ us: -6, ms: -3, s: 0 }[unit]}`)
  }
  expect(histogram?.unit).toBe('s')
  expect(histogram?.explicit.buckets.map(seconds)).toEqual(sc.DURATION_BUCKETS_SECONDS)
  expect(dimensions?.map(({ name }) => name)).toEqual([sc.ATTR_BOUNDARY, sc.ATTR_OUTCOME])
})

test.each([BASE, SAMPLING])('[D24] %s has no key or name that the collector gave up', (file) => {
  // Comments may name them.
  const text = textOf(file).replaceAll(/#.*$/gm, '')
  expect(text).not.toMatch(
    /\b(otlphttp|spanmetrics|logging|add_metric_suffixes|resource_to_telemetry_conversion|dimensions_cache_size|ballast)\b/,
  )
  expect(text).not.toMatch(/^\s{4,}address:/m)
})

test('listens and sends on loopback unless told otherwise', () => {
  const endpoints = [...textOf(BASE).matchAll(/(?:endpoint|host): (\S+)/g)].map(([, value]) => value)
  expect(endpoints).toHaveLength(6)
  for (const endpoint of endpoints) expect(endpoint).toContain('127.0.0.1')
})

test('the collector of the pipeline tests has exactly the components of the files', () => {
  const manifest = parse(textOf('test/collector/manifest.yaml')) as Record<string, { gomod: string }[]>
  for (const kind of ['receiver', 'processor', 'exporter', 'connector', 'extension'] as const) {
    const built = manifest[`${kind}s`]?.map(({ gomod }) => gomod.split(' ')[0]?.split('/').at(-1)).sort()
    const named = Object.keys(sampling[`${kind}s` as const]).map(
      (name) => `${name.split('/')[0]?.replaceAll('_', '')}${kind}`,
    )
    expect(built).toEqual([...new Set(named)].sort())
  }
})

test('tail sampling asks for attributes that exist', () => {
  const policies = JSON.stringify(sampling.processors['tail_sampling'])
  expect(policies).toContain(sc.ATTR_BOUNDARY)
  expect(policies).toContain(`"key":"${sc.ATTR_RECOVERY}","values":${JSON.stringify([...sc.RECOVERIES])}`)
})
