/** How every dashboard of this folder looks: data source, variables, targets, panels, colours. */
import * as common from '@grafana/grafana-foundation-sdk/common'
import * as grafana from '@grafana/grafana-foundation-sdk/dashboard'
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap'
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus'
import * as stat from '@grafana/grafana-foundation-sdk/stat'
import * as statetimeline from '@grafana/grafana-foundation-sdk/statetimeline'
import * as table from '@grafana/grafana-foundation-sdk/table'
import * as text from '@grafana/grafana-foundation-sdk/text'
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries'
import * as sc from '../src/semconv.ts'
import { LABEL, NO_AGENT, PANEL, series, STATES } from './queries.ts'

/** Tag of all three dashboards; the links between them follow it. */
export const TAG = 'dsh-checkpoint'
/** The one data source of every panel, annotation and variable. */
export const DATASOURCE: common.DataSourceRef = { type: 'prometheus', uid: '${datasource}' }
/** Shortest step, and with it `$__rate_interval` of four minutes: enough for one scrape a minute. */
export const MIN_STEP = '1m'

/** Fixed colours by label: the same for a thing on every panel, whatever else is shown beside it. */
export const COLORS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [LABEL.boundary]: { request: '#5794F2', tool: '#FF9830', step: '#B877D9', turn: '#8E8E8E' },
  [LABEL.outcome]: { dispatched: '#73BF69', aborted: '#5794F2', rejected: '#F2495C', timeout: '#FF9830' },
  [LABEL.flushOutcome]: { durable: '#73BF69', rejected: '#F2495C', unconfirmed: '#FF9830', pending: '#FADE2A' },
}

/** One query of a panel. */
export interface Ask {
  readonly expr: string
  readonly legend?: string
  /** One value now, for the whole range, instead of a line. */
  readonly instant?: boolean
  readonly format?: 'table' | 'heatmap'
  readonly exemplar?: boolean
}

/** What every panel has. `help` is one sentence: what to do when it looks bad. */
export interface Face {
  readonly title: string
  readonly help: string
  readonly width: number
  readonly height: number
  readonly unit: string
  /** Value at which a colour begins, from the second on. */
  readonly steps: readonly (readonly [from: number | null, color: string])[]
  readonly decimals?: number
  readonly none?: string
}

/** Green that stays green. */
export const CALM: Face['steps'] = [[null, 'green']]
/** Anything above zero is wrong. */
export const ZERO: Face['steps'] = [
  [null, 'green'],
  [0.5, 'red'],
]

type Panel<T> = T & {
  title(v: string): Panel<T>
  description(v: string): Panel<T>
  datasource(v: common.DataSourceRef): Panel<T>
  span(v: number): Panel<T>
  height(v: number): Panel<T>
  unit(v: string): Panel<T>
  thresholds(v: grafana.ThresholdsConfigBuilder): Panel<T>
  decimals(v: number): Panel<T>
  noValue(v: string): Panel<T>
  withTarget(v: prometheus.DataqueryBuilder): Panel<T>
}

/** One number of now or of the whole range; asked for once, so that a dead process leaves none behind. */
export function statPanel(face: Face, ask: Ask): stat.PanelBuilder {
  const panel = dress(new stat.PanelBuilder(), face, [{ ...ask, instant: true }])
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false))
    .colorMode(common.BigValueColorMode.Background)
    .graphMode(common.BigValueGraphMode.None)
    .textMode(common.BigValueTextMode.Value)
  return panel as stat.PanelBuilder
}

/** Lines over time, coloured by the last word of their legend where {@link COLORS} knows it. */
export function linePanel(
  face: Face,
  asks: readonly Ask[],
  style: 'line' | 'area' | 'bars' = 'line',
): timeseries.PanelBuilder {
  const panel = dress(new timeseries.PanelBuilder(), face, asks)
    .lineWidth(style === 'bars' ? 1 : 2)
    .fillOpacity({ line: 0, area: 35, bars: 80 }[style])
    .drawStyle(style === 'bars' ? common.GraphDrawStyle.Bars : common.GraphDrawStyle.Line)
    .showPoints(common.VisibilityMode.Never)
    .min(0)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true),
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending),
    )
    .thresholdsStyle(
      new common.GraphThresholdsStyleConfigBuilder().mode(
        face.steps.length > 1 ? common.GraphThresholdsStyleMode.Dashed : common.GraphThresholdsStyleMode.Off,
      ),
    )
  if (style !== 'line') panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal))
  for (const [label, colors] of Object.entries(COLORS)) {
    if (!asks.some(({ legend = '' }) => legend.includes(`{{${label}}}`))) continue
    for (const [word, color] of Object.entries(colors)) {
      panel.overrideByRegexp(`/(^| )${word}$/`, [{ id: 'color', value: { mode: 'fixed', fixedColor: color } }])
    }
  }
  return panel as timeseries.PanelBuilder
}

/** Where the observations of a histogram lie over time. */
export function heatmapPanel(face: Face, ask: Ask): heatmap.PanelBuilder {
  const panel = dress(new heatmap.PanelBuilder(), face, [{ ...ask, format: 'heatmap', legend: '{{le}}' }])
    .calculate(false)
    .color(
      new heatmap.HeatmapColorOptionsBuilder()
        .mode(heatmap.HeatmapColorMode.Scheme)
        .scheme('Oranges')
        .exponent(0.5)
        .steps(64),
    )
    .yAxis(new heatmap.YAxisConfigBuilder().unit(face.unit).axisPlacement(common.AxisPlacement.Left))
    .cellValues(new heatmap.CellValuesBuilder().unit('short'))
    .exemplarsColor('rgba(255,0,255,0.7)')
    .showLegend()
  return panel as heatmap.PanelBuilder
}

/** The state of each agent process over time. */
export function statePanel(face: Face, ask: Ask): statetimeline.PanelBuilder {
  const panel = dress(new statetimeline.PanelBuilder(), face, [ask])
    .mappings(stateMappings())
    .showValue(common.VisibilityMode.Auto)
    .mergeValues(true)
    .fillOpacity(85)
    .lineWidth(0)
    .perPage(20)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true),
    )
  return panel as statetimeline.PanelBuilder
}

/** Rows of labels with one value each; time and job columns that say nothing are left out. */
export function tablePanel(face: Face, ask: Ask, columns: Readonly<Record<string, string>>): table.PanelBuilder {
  const panel = dress(new table.PanelBuilder(), face, [{ ...ask, instant: true, format: 'table' }])
    .withTransformation({ id: 'organize', options: { excludeByName: { Time: true }, renameByName: columns } })
    .sortBy([new common.TableSortByFieldStateBuilder().displayName(columns['Value'] ?? 'Value').desc(true)])
  return panel as table.PanelBuilder
}

/** Words. */
export function textPanel(
  title: string,
  help: string,
  content: string,
  width: number,
  height: number,
): text.PanelBuilder {
  return new text.PanelBuilder()
    .title(title)
    .description(help)
    .content(content)
    .mode(text.TextMode.Markdown)
    .span(width)
    .height(height)
}

/** Names and colours of the states. */
export function stateMappings(): grafana.ValueMapping[] {
  const options = Object.fromEntries(
    [NO_AGENT, ...STATES].map(({ value, text: word, color }, index) => [String(value), { text: word, color, index }]),
  )
  return [{ type: grafana.MappingType.ValueToText, options }]
}

/** A quantile of nothing: quiet, or all that began are still open. */
export const IDLE: grafana.ValueMapping[] = [
  {
    type: grafana.MappingType.SpecialValue,
    options: { match: grafana.SpecialValueMatch.NotANumber, result: { text: 'none ended', color: 'blue' } },
  },
]

/** A dashboard with the variables, links and ids that all of them share; rows are built in order. */
export function createDashboard(
  uid: string,
  title: string,
  description: string,
  rows: readonly { readonly title: string; readonly panels: readonly { build(): grafana.Panel }[] }[],
  extend: (dashboard: grafana.DashboardBuilder) => void = () => {},
): grafana.Dashboard {
  const dashboard = new grafana.DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([TAG])
    .editable()
    .timezone('browser')
    .refresh('1m')
    .time({ from: 'now-3h', to: 'now' })
    .tooltip(grafana.DashboardCursorSync.Crosshair)
    .link(
      new grafana.DashboardLinkBuilder('Checkpoint dashboards')
        .type(grafana.DashboardLinkType.Dashboards)
        .tags([TAG])
        .includeVars(true)
        .keepTime(true),
    )
  dashboard.withVariable(new grafana.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
  for (const variable of variables()) dashboard.withVariable(variable)
  extend(dashboard)
  // Numbered here, because Grafana renumbers panels without an id at each load and links to them break.
  let id = 1
  for (const row of rows) {
    dashboard.withRow(new grafana.RowBuilder(row.title).id(id++))
    for (const panel of row.panels) {
      const built = { ...panel.build(), id: id++ }
      dashboard.withPanel({ build: () => built })
    }
  }
  return dashboard.build()
}

/** A mark on every panel of a dashboard. */
export function annotation(
  name: string,
  expr: string,
  titleFormat: string,
  color: string,
): grafana.AnnotationQueryBuilder {
  return new grafana.AnnotationQueryBuilder()
    .name(name)
    .datasource(DATASOURCE)
    .enable(true)
    .iconColor(color)
    .expr(expr)
    .titleFormat(titleFormat)
    .step(MIN_STEP)
}

/** Fill in what all panels have, targets with their refIds and minimum step included. */
function dress<T>(builder: T, face: Face, asks: readonly Ask[]): Panel<T> {
  const panel = (builder as Panel<T>)
    .title(face.title)
    .description(face.help)
    .datasource(DATASOURCE)
    .span(face.width)
    .height(face.height)
    .unit(face.unit)
    .noValue(face.none ?? 'no agent reports')
    .thresholds(
      new grafana.ThresholdsConfigBuilder()
        .mode(grafana.ThresholdsMode.Absolute)
        .steps(face.steps.map(([value, color]) => ({ value, color }))),
    )
  if (face.decimals !== undefined) panel.decimals(face.decimals)
  for (const [index, ask] of asks.entries()) panel.withTarget(target(ask, String.fromCharCode(65 + index)))
  return panel
}

function target(ask: Ask, refId: string): prometheus.DataqueryBuilder {
  const query = new prometheus.DataqueryBuilder()
    .refId(refId)
    .datasource(DATASOURCE)
    .expr(ask.expr)
    .interval(MIN_STEP)
    .legendFormat(ask.legend ?? '')
    .exemplar(ask.exemplar === true)
    .editorMode(prometheus.QueryEditorMode.Code)
  if (ask.format !== undefined) query.format(ask.format as prometheus.PromQueryFormat)
  return ask.instant === true ? query.instant() : query.range()
}

function variables(): grafana.QueryVariableBuilder[] {
  const unscoped = { ...PANEL, matchers: [], variables: false }
  const byJob = { ...unscoped, matchers: ['job=~"$job"'] }
  const variable = (name: string, label: string, of: string, key: string) =>
    new grafana.QueryVariableBuilder(name)
      .label(label)
      .datasource(DATASOURCE)
      .query({ qryType: 1, query: `label_values(${of}, ${key})`, refId: `variable-${name}` })
      .definition(`label_values(${of}, ${key})`)
      .refresh(grafana.VariableRefresh.OnTimeRangeChanged)
      .sort(grafana.VariableSort.AlphabeticalAsc)
      .multi(true)
      .includeAll(true)
      .allValue('.*')
      .current({ selected: true, text: ['All'], value: ['$__all'] })
  // Gauges and counters that exist from the first scrape on, so that a quiet system can be chosen too.
  return [
    variable('job', 'Job', series(sc.METRIC_POLICY_ACTIVE, unscoped), 'job'),
    variable('instance', 'Agent process', series(sc.METRIC_POLICY_ACTIVE, byJob), 'instance'),
    variable('boundary', 'Boundary', series(sc.METRIC_ACTIVE, byJob), LABEL.boundary),
    variable('strategy', 'Strategy', series(sc.METRIC_STRATEGY_FAULTS, byJob), LABEL.strategy),
  ]
}
