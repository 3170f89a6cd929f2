/**
 * Draw the overview from its JSON and real query results, in a headless browser: `node dashboards/render.ts URL JOB FILE`.
 * It is a rendering, not Grafana: it follows the JSON in layout, queries, units, thresholds, mappings and colours.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { PrometheusApi, type Result } from '../test/support/prometheus-server.ts'
import { expand, type Macros } from './promql.ts'

/** What to draw. Times in seconds since the epoch. */
export interface Rendering {
  readonly url: string
  readonly job: string
  readonly start: number
  readonly end: number
  readonly path: string
  /** Dashboard file in this folder. */
  readonly dashboard?: string
}

interface Target {
  readonly expr: string
  readonly legendFormat?: string
  readonly instant?: boolean
  readonly exemplar?: boolean
}

interface Panel {
  readonly type: string
  readonly title: string
  readonly targets?: readonly Target[]
  readonly fieldConfig?: {
    readonly overrides?: readonly {
      readonly matcher: { readonly options?: unknown }
      readonly properties: readonly { readonly id: string; readonly value?: unknown }[]
    }[]
  }
}

interface Dashboard {
  readonly title: string
  readonly description: string
  readonly panels: readonly Panel[]
}

/** Scrape interval of the run; the shortest step, as Grafana would take it. */
const STEP_SECONDS = 5
const WIDTH = 1_600

/** Draw one dashboard. */
export async function render({ url, job, start, end, path, dashboard = 'overview.json' }: Rendering): Promise<void> {
  const { title, description, panels } = JSON.parse(
    readFileSync(new URL(dashboard, import.meta.url), 'utf8'),
  ) as Dashboard
  const api = new PrometheusApi(url)
  const range = `${Math.round(end - start)}s`
  const macros: Macros = {
    rateInterval: `${4 * STEP_SECONDS}s`,
    range,
    interval: `${STEP_SECONDS}s`,
    intervalMs: STEP_SECONDS * 1_000,
  }
  const drawn = []
  for (const panel of panels) {
    const series = []
    const exemplars = []
    for (const { expr, legendFormat = '', instant, exemplar } of panel.targets ?? []) {
      const query = expand(expr, macros, { job })
      const results =
        instant === true ? await api.query(query, end) : await api.queryRange(query, start, end, STEP_SECONDS)
      series.push(...results.map((result) => toSeries(result, legendFormat, panel)))
      if (exemplar === true)
        exemplars.push(
          ...(await api.exemplars(query, start, end)).map(({ timestamp, value }) => [timestamp, Number(value)]),
        )
    }
    drawn.push({ ...panel, series, exemplars: highest(exemplars, start, end) })
  }
  const note = `A rendering of ${dashboard} with uPlot, not a Grafana screenshot. Real query results: ${Math.round((end - start) / 60)} minutes, scraped every ${STEP_SECONDS} s, job "${job}".`
  await draw({ title, description, note, start, end, step: STEP_SECONDS, panels: drawn }, path)
}

/** The slowest exemplar of each of forty slices of time: more would hide what lies under them. */
function highest(exemplars: readonly (readonly number[])[], start: number, end: number) {
  const slices = new Map<number, readonly number[]>()
  for (const exemplar of exemplars) {
    const [time = 0, value = 0] = exemplar
    const slice = Math.floor(((time - start) / (end - start)) * 40)
    if (value > (slices.get(slice)?.[1] ?? 0)) slices.set(slice, exemplar)
  }
  return [...slices.values()]
}

async function draw(data: object, path: string): Promise<void> {
  const uplot = createRequire(import.meta.url).resolve('uplot/dist/uPlot.iife.min.js')
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 } })
    await page.setContent('<!doctype html><html><body></body></html>')
    await page.addStyleTag({ path: uplot.replace('uPlot.iife.min.js', 'uPlot.min.css') })
    await page.addStyleTag({ path: fileURLToPath(new URL('rendering/page.css', import.meta.url)) })
    await page.addScriptTag({ path: uplot })
    await page.addScriptTag({ path: fileURLToPath(new URL('rendering/page.js', import.meta.url)) })
    await page.evaluate(`drawDashboard(${JSON.stringify(data)})`)
    await page.screenshot({ path, fullPage: true })
  } finally {
    await browser.close()
  }
}

function toSeries({ metric, value, values }: Result, legend: string, { fieldConfig }: Panel) {
  const name = legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '').trim()
  const properties = (fieldConfig?.overrides ?? []).flatMap((override) => {
    const [, pattern] = /^\/(.*)\/$/.exec(String(override.matcher.options)) ?? []
    return pattern !== undefined && new RegExp(pattern).test(name) ? override.properties : []
  })
  const property = (wanted: string) => properties.find(({ id }) => id === wanted)?.value
  const color = (property('color') as { fixedColor?: string } | undefined)?.fixedColor
  const dash = (property('custom.lineStyle') as { dash?: number[] } | undefined)?.dash
  const points = (values ?? (value === undefined ? [] : [value])).map(([time, text]) => [time, Number(text)])
  // JSON has no NaN: a value that is none is told apart from a point that is not there.
  return {
    name,
    metric,
    color,
    dash,
    points: points.map(([time, number]) => [time, Number.isFinite(number) ? number : 'NaN']),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [url = '', job = '', path = '', minutes = '9', dashboard] = process.argv.slice(2)
  const end = Number(process.env['END'] ?? Date.now() / 1_000)
  await render({
    url,
    job,
    path,
    start: end - Number(minutes) * 60,
    end,
    ...(dashboard === undefined ? {} : { dashboard }),
  })
}
