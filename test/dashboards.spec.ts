/** The dashboards and rules as files: generated, sound, and only about what the contract names. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ALERTS } from '../dashboards/alerts.ts'
import { artifacts } from '../dashboards/build.ts'
import { KNOWN_METRICS, lint, lintQuery, type DashboardJson } from '../dashboards/lint.ts'
import { examine } from '../dashboards/promql.ts'
import { RECORDINGS } from '../dashboards/rules.ts'
import { INSTRUMENTS } from '../src/semconv.ts'
import { PROMETHEUS_INSTALLED } from './support/prometheus-server.ts'
import { requirement } from './support/require.ts'

const FOLDER = new URL('../dashboards/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FOLDER), 'utf8')
const DASHBOARDS = ['overview.json', 'latency.json', 'incident.json'] as const
const dashboard = (path: string) =>
  JSON.parse(read(path)) as DashboardJson & { readonly title: string; readonly links: readonly object[] }
const RULE_FILE = fileURLToPath(new URL('checkpoint.rules.yaml', FOLDER))

test.each(Object.keys(artifacts()))('%s is what its TypeScript source generates', (path) => {
  // When this is red: npm run dashboards.
  expect(read(path)).toBe(artifacts()[path])
})

test('every dashboard in the folder is generated', () => {
  const found = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
  expect(new Set(found)).toEqual(new Set(DASHBOARDS))
})

describe.each(DASHBOARDS)('%s', (path) => {
  test('[D23] has no finding of the linter', () => {
    expect(lint(dashboard(path))).toEqual([])
  })

  test('has one sentence of help on each panel', () => {
    const panels = (dashboard(path).panels ?? []).filter(({ type }) => type !== 'row' && type !== 'text')
    const others = panels.filter(({ description = '' }) => !/^[^.]+(?:\d\.\d[^.]*)*\.$/.test(description))
    expect(others.map(({ title }) => title)).toEqual([])
  })
})

test('the dashboards keep apart: one uid each', () => {
  const uids = DASHBOARDS.map((path) => dashboard(path).uid)
  expect(uids).toEqual(['dsh-checkpoint-overview', 'dsh-checkpoint-latency', 'dsh-checkpoint-incident'])
})

test('[D20] every instrument of the contract is on a dashboard', () => {
  const text = DASHBOARDS.map(read).join('')
  for (const { prometheus } of Object.values(INSTRUMENTS)) expect(text).toContain(prometheus)
})

test('[D23] the linter catches each mistake of the bad dashboard, and nothing else', () => {
  const bad = JSON.parse(
    readFileSync(new URL('./fixtures/dashboard-bad.json', import.meta.url), 'utf8'),
  ) as DashboardJson
  expect(lint(bad)).toEqual([
    'dashboard: has an id, which belongs to one Grafana',
    'dashboard: needs a stable uid',
    'dashboard: has inputs, which provisioning does not resolve',
    'dashboard: unresolved variable DS_PROMETHEUS',
    'dashboard: literal data source tempo-1 in a link',
    'variables: need one Prometheus data source variable, found 2',
    'variable instance: needs All and many values',
    'variables: no strategy',
    'variable job: not on the data source variable',
    'variable instance: unknown metric dsh_checkpoint_nothing',
    'annotation Starts: not on the data source variable',
    'annotation Starts: minimum step below 60 s',
    'annotation Starts: fixed window in a rate',
    'panel Bare: needs an id of its own',
    'panel Bare: overlaps another panel',
    'panel Bare: no description',
    'panel Bare: not on the data source variable',
    'panel Bare: no unit',
    'panel Bare: no thresholds',
    'panel Bare: needs queries with a refId each',
    'panel Bare A: counter dsh_checkpoint_rejections_total outside rate or increase',
    'panel Bare A: fixed window in a rate',
    'panel Queries: overlaps another panel',
    'panel Queries A: quantile without le',
    'panel Queries B: does not parse at 59',
    'panel Queries C: unknown metric dsh_checkpoint_barrier_duration_seconds_seconds_count',
    'panel Queries D: $__range over time, where $__rate_interval belongs',
    'panel Queries E: unknown label boundary',
    'panel Queries E: minimum step below 60 s',
  ])
})

test('the metrics that queries may read are the contract and four families of the process', () => {
  const others = [...KNOWN_METRICS].filter((name) => !name.startsWith('dsh_checkpoint_'))
  expect(others).toEqual([
    'process_start_time_seconds',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_gc_duration_seconds_bucket',
    'nodejs_gc_duration_seconds_sum',
    'nodejs_gc_duration_seconds_count',
  ])
})

describe('the rules', () => {
  test('parse, and read only the contract', () => {
    const queries = [
      ...ALERTS.map(({ name, expr }) => [name, expr] as const),
      ...RECORDINGS.map(({ record, expr }) => [record, expr] as const),
    ]
    expect(queries.flatMap(([name, expr]) => lintQuery(name, examine(expr)))).toEqual([])
  })

  test('cover what can go wrong, each with a runbook, under the same name in Prometheus, Grafana and the runbook', () => {
    const names = ALERTS.map(({ name }) => name)
    expect(names).toEqual([
      'DshCheckpointRejected',
      'DshCheckpointNotDurable',
      'DshCheckpointHung',
      'DshCheckpointUnflushed',
      'DshCheckpointUnguarded',
      'DshCheckpointStrategyFault',
      'DshCheckpointSlow',
      'DshCheckpointAgentGone',
      'DshCheckpointNoPolicy',
      'DshCheckpointTelemetryGone',
    ])
    const { groups } = parse(read('checkpoint.rules.yaml')) as {
      groups: { rules: { alert?: string; annotations?: { runbook: string } }[] }[]
    }
    const rules = groups.flatMap((group) => group.rules).filter(({ alert }) => alert !== undefined)
    expect(rules.map(({ alert }) => alert)).toEqual(names)
    for (const { annotations } of rules) expect(annotations?.runbook.length).toBeGreaterThan(100)
    const grafana = parse(read('provisioning/alerting/checkpoint.yaml')) as {
      groups: { rules: { title: string; uid: string; data: { datasourceUid: string }[] }[] }[]
    }
    const provisioned = grafana.groups.flatMap((group) => group.rules)
    expect(provisioned.map(({ title }) => title)).toEqual(names)
    for (const { uid, data } of provisioned) {
      expect(uid.length).toBeLessThanOrEqual(40)
      expect(data.map(({ datasourceUid }) => datasourceUid)).toEqual(['${DSH_PROMETHEUS_UID}', '__expr__'])
    }
    expect([...read('RUNBOOK.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name)).toEqual(names)
  })

  test('have a firing and a silent case each in the promtool tests', () => {
    const cases = read('checkpoint.rules.test.yaml')
    for (const { name } of ALERTS) expect(cases).toContain(`alertname="${name}"`)
  })
})

describe('the stack', () => {
  const compose = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<
      string,
      { image: string; volumes?: string[]; ports?: string[]; environment?: Record<string, string> }
    >
  }

  test('[D24] pins every image, publishes on loopback alone, and mounts files that exist', () => {
    for (const { image, ports = [], volumes = [] } of Object.values(compose.services)) {
      expect(image).toMatch(/:v?\d+\.\d+\.\d+[\w-]*$/)
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
      expect(volumes.filter((volume) => !existsSync(new URL(volume.split(':')[0] ?? '', FOLDER)))).toEqual([])
    }
  })

  test('gives the provisioning files each variable they ask for', () => {
    const files = ['datasources/prometheus.yaml', 'dashboards/checkpoint.yaml', 'alerting/checkpoint.yaml'].map(
      (path) => read(`provisioning/${path}`),
    )
    const asked = new Set(files.flatMap((text) => [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name)))
    expect([...asked].toSorted((a = '', b = '') => a.localeCompare(b))).toEqual([
      'DSH_JAEGER_UID',
      'DSH_JAEGER_URL',
      'DSH_PROMETHEUS_UID',
      'DSH_PROMETHEUS_URL',
    ])
    for (const name of asked) expect(Object.keys(compose.services['grafana']?.environment ?? {})).toContain(name)
  })

  test('sets only variables that the collector file reads', () => {
    const collector = readFileSync(new URL('../otel-collector.yaml', FOLDER), 'utf8')
    for (const name of Object.keys(compose.services['collector']?.environment ?? {}))
      expect(collector).toContain(`\${env:${name}`)
  })
})

describe.skipIf(!requirement('promtool (apt-get install prometheus)', PROMETHEUS_INSTALLED))('promtool', () => {
  const promtool = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }

  test('accepts the rules', () => {
    expect(promtool('check', 'rules', RULE_FILE)).toMatchObject({ status: 0 })
  })

  test('finds each alert firing where it should and silent where it should', () => {
    expect(promtool('test', 'rules', RULE_FILE.replace('.rules.', '.rules.test.'))).toMatchObject({ status: 0 })
  })

  test('accepts the scrape configuration of the compose file', () => {
    expect(
      promtool('check', 'config', '--syntax-only', fileURLToPath(new URL('prometheus.yaml', FOLDER))),
    ).toMatchObject({ status: 0 })
  })
})
