/** Incident: from a rejection or a hung barrier to its traces. */
import * as grafana from '@grafana/grafana-foundation-sdk/dashboard'
import * as sc from '../src/semconv.ts'
import {
  annotation,
  CALM,
  createDashboard,
  linePanel,
  statPanel,
  tablePanel,
  textPanel,
  ZERO,
  type Face,
} from './panels.ts'
import {
  counted,
  HUNG_SECONDS,
  LABEL,
  orQuiet,
  PANEL,
  PROCESS_LABELS,
  quantile,
  RANGE,
  series,
  UNFLUSHED_SECONDS,
} from './queries.ts'

const PROCESS_LEGEND = '{{job}} {{instance}}'
const HUNG: Face['steps'] = [
  [null, 'green'],
  [HUNG_SECONDS, 'red'],
]

/** The dashboard as Grafana imports it. */
export function incident(): grafana.Dashboard {
  return createDashboard(
    'dsh-checkpoint-incident',
    'Checkpoint incident',
    'From a rejected or hung barrier to the process, the cause and the traces.',
    [
      { title: 'What failed', panels: failed() },
      { title: 'What hangs', panels: hangs() },
      { title: 'Aftermath', panels: aftermath() },
    ],
    (dashboard) => {
      const tracing = (name: string, label: string) =>
        new grafana.DatasourceVariableBuilder(name)
          .label(label)
          .type(name)
          .description(`Where the links on "Failed barriers" go; empty without a ${label} data source.`)
      dashboard.withVariable(tracing('tempo', 'Tempo'))
      dashboard.withVariable(tracing('jaeger', 'Jaeger'))
      dashboard.withVariable(
        new grafana.TextBoxVariableBuilder('service')
          .label('Service name')
          .defaultValue('dsh')
          .description('Jaeger searches within one service: the OTEL_SERVICE_NAME of the agents.'),
      )
      dashboard.annotation(
        annotation(
          'Failed barriers',
          `${counted(sc.METRIC_REJECTIONS, { ...PANEL, window: '$__interval' }, [LABEL.boundary, LABEL.errorType])} > 0`,
          `{{${LABEL.errorType}}} at {{${LABEL.boundary}}}`,
          'red',
        ),
      )
    },
  )
}

function failed() {
  const labels = [...PROCESS_LABELS, LABEL.boundary, LABEL.errorType]
  const tile = { width: 3, height: 8, unit: 'short', decimals: 0 }
  const table = tablePanel(
    {
      title: 'Failed barriers, with links to their traces',
      help: 'One row for each process, boundary and cause in this time range: open the traces of a row to see session, turn and tool, then repair what the cause names.',
      width: 12,
      height: 8,
      unit: 'short',
      decimals: 0,
      steps: CALM,
      none: 'no failed barrier in this time range',
    },
    { expr: `${counted(sc.METRIC_REJECTIONS, RANGE, labels)} > 0` },
    { job: 'Job', instance: 'Process', [LABEL.boundary]: 'Boundary', [LABEL.errorType]: 'Cause', Value: 'Failed' },
  ).overrideByName('Failed', [{ id: 'links', value: [tempoLink(), jaegerLink()] }])
  return [
    table,
    statPanel(
      {
        ...tile,
        title: 'Failing in a row',
        help: 'Flushes of the worst session that failed one after the other: above zero the storage fails right now, zero means that it works again.',
        steps: ZERO,
      },
      { expr: `max(${series(sc.METRIC_CONSECUTIVE_FAILURES, PANEL)})` },
    ),
    statPanel(
      {
        ...tile,
        title: 'Open barriers',
        help: 'Agents that wait, and writes that run, right now: look at the age before you worry about the number.',
        steps: [[null, 'blue']],
      },
      { expr: `sum(${series(sc.METRIC_ACTIVE, PANEL)})` },
    ),
    textPanel(
      'Where to look',
      'How to get from here to one session.',
      [
        '1. Click a number under **Failed**: the link opens the traces of that boundary and cause.',
        '2. The span carries `gen_ai.conversation.id` (the session), turn, step and call.',
        '3. A barrier that is still open **has no span yet**: the agent logs `checkpoint … is open for …` with its session once it is overdue.',
        '4. Repair the storage. Nothing is retried by itself; the next barrier writes what is pending.',
      ].join('\n'),
      6,
      8,
    ),
  ]
}

function hangs() {
  const face = { width: 8, height: 7, unit: 's', steps: HUNG }
  return [
    linePanel(
      {
        ...face,
        title: 'Oldest open barrier by process',
        help: 'A line that climbs at 45 degrees is one hung write: check the storage of that process, or cancel the turn, which is safe.',
      },
      [
        {
          expr: `topk(10, max by (${PROCESS_LABELS.join(', ')}) (${series(sc.METRIC_OLDEST_AGE, PANEL)}))`,
          legend: PROCESS_LEGEND,
        },
      ],
    ),
    linePanel(
      {
        ...face,
        title: 'Open barriers by boundary',
        help: 'Where agents wait: only turn means that nobody waits, a write is just running.',
        unit: 'short',
        decimals: 0,
        steps: CALM,
      },
      [{ expr: `sum by (${LABEL.boundary}) (${series(sc.METRIC_ACTIVE, PANEL)})`, legend: `{{${LABEL.boundary}}}` }],
    ),
    linePanel(
      {
        ...face,
        title: 'Oldest unflushed event by process',
        help: 'How much work a crash of that process would lose: climbing without end means its writes fail or hang.',
        steps: [
          [null, 'green'],
          [UNFLUSHED_SECONDS, 'red'],
        ],
      },
      [
        {
          expr: `topk(10, max by (${PROCESS_LABELS.join(', ')}) (${series(sc.METRIC_UNFLUSHED_AGE, PANEL)}))`,
          legend: PROCESS_LEGEND,
        },
      ],
    ),
    linePanel(
      {
        ...face,
        title: 'Waits that ended badly (p99), with exemplars',
        help: 'How long rejected, aborted and timed-out barriers had waited: open an exemplar to get to the trace of one of them.',
        width: 24,
        steps: CALM,
        none: 'every barrier let go in this time range',
      },
      [
        {
          expr: quantile(0.99, sc.METRIC_BARRIER_DURATION, PANEL, [LABEL.outcome], [`${LABEL.outcome}!="dispatched"`]),
          legend: `{{${LABEL.outcome}}}`,
          exemplar: true,
        },
      ],
    ),
  ]
}

function aftermath() {
  const face = { width: 8, height: 6, unit: 'short', decimals: 0, steps: CALM }
  return [
    linePanel(
      {
        ...face,
        title: 'Calls that crash recovery answered',
        help: 'Check each call with verdict unknown by hand, since its effect may have taken place; not_started calls are safe to repeat.',
      },
      [
        {
          expr: orQuiet(counted(sc.METRIC_RECOVERED, PANEL, [LABEL.recovery]), PANEL, LABEL.recovery),
          legend: `{{${LABEL.recovery}}}`,
        },
      ],
      'bars',
    ),
    linePanel(
      {
        ...face,
        title: 'Policies mounted',
        help: 'One in each process: a process at 0 runs its agents without any barrier, so mount the policy again or stop it.',
        steps: [[null, 'blue']],
      },
      [
        {
          expr: `sum by (${PROCESS_LABELS.join(', ')}) (${series(sc.METRIC_POLICY_ACTIVE, PANEL)})`,
          legend: PROCESS_LEGEND,
        },
      ],
    ),
    linePanel(
      {
        ...face,
        title: 'Unguarded releases',
        help: 'Requests and calls that left without a durable log: after an incident, check what they did, as the log may not tell.',
      },
      [
        {
          expr: orQuiet(counted(sc.METRIC_UNGUARDED, PANEL, [LABEL.boundary]), PANEL, LABEL.boundary),
          legend: `{{${LABEL.boundary}}}`,
        },
      ],
      'bars',
    ),
  ]
}

const BOUNDARY_FIELD = '${__data.fields.Boundary}'
const CAUSE_FIELD = '${__data.fields.Cause}'

function tempoLink() {
  const query = `{ span.${sc.ATTR_BOUNDARY} = "${BOUNDARY_FIELD}" && span.${sc.ATTR_ERROR_TYPE} = "${CAUSE_FIELD}" }`
  return explore('Traces in Tempo', '${tempo}', { queryType: 'traceql', query })
}

function jaegerLink() {
  const tags = `${sc.ATTR_BOUNDARY}=${BOUNDARY_FIELD} ${sc.ATTR_ERROR_TYPE}=${CAUSE_FIELD}`
  return explore('Traces in Jaeger', '${jaeger}', { queryType: 'search', service: '${service}', tags })
}

/** A link into Grafana's Explore; variables stay readable, or Grafana would not fill them in. */
function explore(title: string, datasource: string, query: object) {
  const panes = { a: { datasource, queries: [{ refId: 'A', ...query }], range: { from: '${__from}', to: '${__to}' } } }
  const encoded = encodeURIComponent(JSON.stringify(panes)).replaceAll(/%24%7B([\w.]+)%7D/g, '${$1}')
  return { title, url: `/explore?schemaVersion=1&panes=${encoded}`, targetBlank: true }
}
