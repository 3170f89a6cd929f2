/** The benchmark's report as one file: charts, figures and the chart library in it, nothing fetched. */
import { readFileSync } from 'node:fs'
import { duration } from '../table.ts'
import { chartScript } from './html-chart.ts'
import { STYLE } from './html-style.ts'
import type { BenchCell, BenchReport, BenchWorkload } from './report.ts'
import { NOISE_RULE } from './statistics.ts'
import { conclusionLines, ratioText, syncLines } from './text.ts'
import { nameOf, settingName } from './variants.ts'

/** Write the document. */
export function benchHtml(report: BenchReport): string {
  const { machine, rounds, steps, reference } = report
  const data = report.workloads.map(({ id, cells }) => ({
    id,
    settings: [...new Set(cells.map(settingName))],
    series: report.strategies.map((strategy) => ({
      strategy,
      values: cells.filter((cell) => cell.strategy === strategy).map(({ waitedMs }) => waitedMs),
    })),
  }))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>What checkpoint barriers cost: ${escape(machine.node)}, ${escape(report.sync.fileSystem.type)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>What checkpoint barriers cost here</h1>
<p class="lead">Time an agent waits for durability, per step, with each strategy and backend setting. Lower is better. Bars are medians of ${rounds} shuffled rounds of ${steps + 1} steps; whiskers are 95&nbsp;% bootstrap intervals.</p>
<dl>
<dt>Machine</dt><dd>${escape(machine.cpu)}, ${machine.cpus} processors, load ${machine.load.toFixed(1)}, ${escape(machine.platform)}</dd>
<dt>Node</dt><dd>${escape(machine.node)}; dsh-checkpoint-otel ${escape(report.version)}; ${escape(report.measuredAt.slice(0, 16).replace('T', ' '))} UTC, ${report.seconds.toFixed(0)} s</dd>
<dt>Disk</dt><dd>${syncLines(report.folder, report.sync)
    .map((line) => plain(line))
    .join('<br>')}</dd>
${report.absent.length === 0 ? '' : `<dt>Not measured</dt><dd>${report.absent.map(escape).join('<br>')}</dd>\n`}</dl>
<h2>What would change against ${escape(reference)}</h2>
${conclusionLines(report)
  .map((line) => `<p class="${line.startsWith('    ') ? 'advice more-of' : 'advice'}">${plain(line)}</p>`)
  .join('\n')}
${report.workloads.map((workload) => section(workload, report)).join('\n')}
<h2>How to read it</h2>
<ul>
<li><b>Ratio</b>: to <i>${escape(report.strategies[0] ?? '')}</i> under the same setting. <b>To reference</b>: to <i>${escape(reference)}</i>, what most installations run. Both are medians of the ratios within one round, so that a slow minute weighs on both sides.</li>
<li><b>Noise</b>: the reference, measured a second time in each round, against itself: ${NOISE_RULE}; otherwise nothing is concluded from that workload.</li>
<li>Waiting is measured by hooks around the policy, the same for every policy; waits that overlap count once.</li>
${report.strategies.includes('selective') ? '<li><b>selective</b> was measured with every tool released: such calls run before they are on disk.</li>\n' : ''}</ul>
</main>
<script>${chartLibrary()}</script>
<script type="application/json" id="data">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
<script>(${chartScript.toString()})()</script>
</body>
</html>
`
}

function section({ id, title, noise, steady, cells }: BenchWorkload, report: BenchReport): string {
  const verdict = steady
    ? `<span class="steady">noise ${ratioText(noise)}</span>`
    : `<span class="noisy">too noisy to conclude: ${ratioText(noise)}</span>`
  return `<section>
<h2>${escape(title.charAt(0).toUpperCase() + title.slice(1))} ${verdict}</h2>
<div class="chart"><canvas id="chart-${escape(id)}" role="img" aria-label="Milliseconds waited per step; the table below has the figures"></canvas></div>
<details><summary>Figures</summary>
<div class="scroll"><table>
<thead><tr><th>strategy, setting</th><th>waited per step</th><th>95 % interval</th><th>ratio</th><th>to reference</th></tr></thead>
<tbody>
${cells.map((cell) => row(cell, report, steady)).join('\n')}
</tbody></table></div></details>
</section>`
}

function row(cell: BenchCell, { reference }: BenchReport, steady: boolean): string {
  const { waitedMs, ratio, ratioToReference, finding } = cell
  const isReference = nameOf(cell) === reference
  return `<tr class="${steady ? finding : 'unsure'}"><th scope="row">${escape(nameOf(cell))}</th><td>${duration(waitedMs.median)}</td><td>${duration(waitedMs.low)} to ${duration(waitedMs.high)}</td><td>${ratio === undefined ? '' : ratioText(ratio)}</td><td>${isReference ? 'reference' : ratioText(ratioToReference)}</td></tr>`
}

/** The library's own bundle; its package exports no path to it, but ships it beside its entry. */
function chartLibrary(): string {
  const url = new URL('chart.umd.min.js', import.meta.resolve('chart.js'))
  const source = readFileSync(url, 'utf8').replace(/\/\/# sourceMappingURL=.*$/m, '')
  return source.replaceAll('</script', '<\\/script')
}

function plain(line: string): string {
  // eslint-disable-next-line no-control-regex -- colours of a terminal begin with an escape.
  return escape(line.replace(/\u001B\[\d+m/g, '').trim())
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
