/** The script of the HTML report. It runs in the browser, from its own source text: nothing outside it may be used. */

/** Draw one chart per workload, and again when the browser's colours change. */
export function chartScript(): void {
  interface Value {
    median: number
    low: number
    high: number
  }
  interface Group {
    id: string
    settings: string[]
    series: { strategy: string; values: Value[] }[]
  }
  const page = globalThis as unknown as {
    document: { getElementById(id: string): { textContent: string }; documentElement: object }
    getComputedStyle(element: object): { getPropertyValue(name: string): string }
    matchMedia(query: string): { matches: boolean; addEventListener(type: string, listener: () => void): void }
    Chart: { new (canvas: object, config: object): { destroy(): void } }
  }
  const groups = JSON.parse(page.document.getElementById('data').textContent) as Group[]
  const round = (ms: number) => (ms >= 100 ? ms.toFixed(0) : ms.toFixed(2))
  const colour = (name: string) => page.getComputedStyle(page.document.documentElement).getPropertyValue(name).trim()
  let charts: { destroy(): void }[] = []

  const whiskers = (group: Group) => ({
    id: 'whiskers',
    afterDatasetsDraw(chart: any) {
      const { ctx: pen, scales, chartArea } = chart
      pen.save()
      pen.beginPath()
      pen.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height)
      pen.clip()
      pen.strokeStyle = colour('--text')
      pen.lineWidth = 1.2
      for (const [index, { values }] of group.series.entries()) {
        if (!chart.isDatasetVisible(index)) continue
        for (const [bar, { low, high }] of values.entries()) {
          const x = chart.getDatasetMeta(index).data[bar].x
          const [top, bottom] = [scales.y.getPixelForValue(high), scales.y.getPixelForValue(low)]
          pen.beginPath()
          pen.moveTo(x, top)
          pen.lineTo(x, bottom)
          pen.moveTo(x - 3, top)
          pen.lineTo(x + 3, top)
          pen.moveTo(x - 3, bottom)
          pen.lineTo(x + 3, bottom)
          pen.stroke()
        }
      }
      pen.restore()
    },
  })

  const draw = () => {
    for (const chart of charts) chart.destroy()
    const [text, dim, line] = [colour('--text'), colour('--dim'), colour('--line')]
    charts = groups.map((group) => {
      // One long whisker must not flatten all bars.
      const tops = group.series.flatMap(({ values }) => values.map(({ median, high }) => Math.min(high, median * 2)))
      return new page.Chart(page.document.getElementById(`chart-${group.id}`), {
        type: 'bar',
        plugins: [whiskers(group)],
        data: {
          labels: group.settings,
          datasets: group.series.map(({ strategy, values }, index) => ({
            label: strategy,
            data: values.map(({ median }) => median),
            backgroundColor: colour(`--s${index % 5}`),
            maxBarThickness: 34,
          })),
        },
        options: {
          animation: false,
          maintainAspectRatio: false,
          plugins: {
            legend: { labels: { color: text, boxWidth: 14, boxHeight: 14 } },
            tooltip: {
              callbacks: {
                label: (item: { datasetIndex: number; dataIndex: number }) => {
                  const { strategy = '', values = [] } = group.series[item.datasetIndex] ?? {}
                  const { median = 0, low = 0, high = 0 } = values[item.dataIndex] ?? {}
                  return `${strategy}: ${round(median)} ms (${round(low)} to ${round(high)})`
                },
              },
            },
          },
          scales: {
            x: { ticks: { color: dim }, grid: { display: false }, border: { color: line } },
            y: {
              suggestedMax: Math.max(...tops),
              beginAtZero: true,
              title: { display: true, text: 'ms waited per step', color: dim },
              ticks: { color: dim },
              grid: { color: line },
              border: { display: false },
            },
          },
        },
      })
    })
  }
  draw()
  page.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
}
