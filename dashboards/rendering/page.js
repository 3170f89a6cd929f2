// Runs in the browser: draws what render.ts collected. Plain script: uPlot is a global, and drawDashboard becomes one.
/* global uPlot, document */
const NAMED = {
  green: '#2f8f46',
  'dark-red': '#8f1023',
  red: '#c4162a',
  orange: '#d9691b',
  yellow: '#b58a00',
  blue: '#2a5db0',
}
const PALETTE = [
  '#73BF69',
  '#F2CC0C',
  '#8AB8FF',
  '#FF780A',
  '#F2495C',
  '#5794F2',
  '#B877D9',
  '#705DA0',
  '#37872D',
  '#FADE2A',
]
const ROW_PIXELS = 34
const MARGIN = 6

globalThis.drawDashboard = (data) => {
  document.body.innerHTML = `<header><h1></h1><p></p></header><div class="grid"></div><footer></footer>`
  document.querySelector('h1').textContent = data.title
  document.querySelector('header p').textContent = data.description
  document.querySelector('footer').textContent = data.note
  const grid = document.querySelector('.grid')
  const column = (document.body.clientWidth - 16) / 24
  grid.style.height = `${Math.max(...data.panels.map(({ gridPos: { y, h } }) => y + h)) * ROW_PIXELS}px`
  for (const panel of data.panels) {
    const { x, y, w, h } = panel.gridPos
    const box = grid.appendChild(document.createElement('div'))
    box.className = `panel ${panel.type}`
    box.style.cssText = `left:${x * column}px;top:${y * ROW_PIXELS}px;width:${w * column - MARGIN}px;height:${h * ROW_PIXELS - MARGIN}px`
    box.appendChild(document.createElement('h2')).textContent = panel.title
    const draw = {
      stat: drawStat,
      timeseries: drawLines,
      heatmap: drawHeatmap,
      'state-timeline': drawStates,
      table: drawTable,
    }[panel.type]
    if (draw === undefined) continue
    if (panel.series.length === 0) say(box, panel.fieldConfig.defaults.noValue ?? 'No data', panel.type === 'stat')
    else draw(box, panel, data)
  }
}

function say(box, text, big) {
  const none = box.appendChild(document.createElement('div'))
  none.className = 'none'
  none.textContent = text
  if (big) none.style.fontSize = '18px'
}

function drawStat(box, panel) {
  const { defaults } = panel.fieldConfig
  const numbers = panel.series[0].points.map(([, value]) => value)
  const finite = numbers.filter((value) => value !== 'NaN')
  const value = finite.at(-1) ?? 'NaN'
  const mapping = mapped(value, defaults)
  const color = NAMED[mapping?.color ?? stepAt(value, defaults)]
  box.style.background = color
  box.classList.add('filled')
  const stat = box.appendChild(document.createElement('div'))
  stat.className = 'number'
  const word = stat.appendChild(document.createElement('span'))
  word.textContent = mapping?.text ?? format(value, defaults.unit, defaults.decimals)
  word.style.fontSize = `${Math.min(44, (box.clientWidth * 1.25) / Math.max(4, word.textContent.length))}px`
}

function drawLines(box, panel, data) {
  const { defaults } = panel.fieldConfig
  const { drawStyle = 'line', fillOpacity = 0, lineWidth = 2, stacking, thresholdsStyle } = defaults.custom
  const stacked = stacking?.mode === 'normal'
  const times = []
  for (let time = data.start; time <= data.end + 1e-6; time += data.step) times.push(time)
  const list = panel.series.map((series, index) => {
    const byTime = new Map(
      series.points.map(([time, value]) => [
        Math.round((time - data.start) / data.step),
        value === 'NaN' ? null : value,
      ]),
    )
    return {
      ...series,
      color: series.color ?? PALETTE[index % PALETTE.length],
      values: times.map((_, slot) => byTime.get(slot) ?? null),
    }
  })
  if (list.every(({ values }) => values.every((value) => value === null)))
    return say(box, defaults.noValue ?? 'No data')
  const plot = box.appendChild(document.createElement('div'))
  plot.className = 'plot'
  drawLegend(box, list)
  const floors = times.map(() => 0)
  const shown = list.map(({ values }) => (stacked ? values.map((value, slot) => (floors[slot] += value ?? 0)) : values))
  // Drawn from the back: the tallest stack first.
  const order = stacked ? list.map((_, index) => list.length - 1 - index) : list.map((_, index) => index)
  const steps = (defaults.thresholds.steps ?? []).filter(({ value }) => value !== null && value !== undefined)
  const lines = thresholdsStyle?.mode === 'dashed' ? steps : []
  const top = Math.max(0, ...shown.flat().filter((value) => value !== null))
  // Draws itself into its place.
  void new uPlot(
    {
      width: plot.clientWidth,
      height: plot.clientHeight,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: true }, y: { range: () => [0, top === 0 ? 1 : top * 1.08] } },
      axes: [
        { ...axis(), space: 60, incrs: [60, 120, 300, 600, 1800, 3600], values: (_, ticks) => ticks.map(clock) },
        { ...axis(), size: 62, values: (_, ticks) => ticks.map((tick) => format(tick, defaults.unit)) },
      ],
      series: [
        {},
        ...order.map((index) => ({
          stroke: list[index].color,
          width: drawStyle === 'bars' ? 1 : lineWidth,
          fill:
            fillOpacity > 0
              ? alpha(list[index].color, stacked && drawStyle !== 'bars' ? 1 : fillOpacity / 100)
              : undefined,
          dash: list[index].dash,
          points: { show: false },
          paths: drawStyle === 'bars' ? uPlot.paths.bars({ size: [1, 100] }) : undefined,
        })),
      ],
      hooks: { draw: [(u) => lines.forEach(({ value, color }) => dashed(u, value, NAMED[color] ?? color))] },
    },
    [times, ...order.map((index) => shown[index])],
    plot,
  )
}

function axis() {
  return { stroke: '#9a9aa8', font: '11px sans-serif', grid: { stroke: '#25272e', width: 1 }, ticks: { show: false } }
}

function dashed(u, value, color) {
  const y = u.valToPos(value, 'y', true)
  if (y < u.bbox.top) return
  u.ctx.save()
  u.ctx.strokeStyle = color
  u.ctx.setLineDash([8, 6])
  u.ctx.beginPath()
  u.ctx.moveTo(u.bbox.left, y)
  u.ctx.lineTo(u.bbox.left + u.bbox.width, y)
  u.ctx.stroke()
  u.ctx.restore()
}

function drawHeatmap(box, panel, data) {
  const { defaults } = panel.fieldConfig
  const rows = panel.series
    .map(({ metric, points }) => ({
      le: metric.le === '+Inf' ? Infinity : Number(metric.le),
      at: new Map(points.map(([time, value]) => [Math.round((time - data.start) / data.step), value])),
    }))
    .sort((a, b) => a.le - b.le)
  const columns = Math.round((data.end - data.start) / data.step) + 1
  const cells = rows.map((row, index) =>
    Array.from({ length: columns }, (_, slot) =>
      Math.max(0, Number(row.at.get(slot) ?? 0) - Number(rows[index - 1]?.at.get(slot) ?? 0)),
    ),
  )
  const used = cells.map((row) => row.some((value) => value > 0))
  const low = Math.max(0, used.indexOf(true) - 1)
  const high = Math.min(rows.length - 1, used.lastIndexOf(true) + 1)
  const most = Math.max(1e-9, ...cells.flat())
  const plot = box.appendChild(document.createElement('div'))
  plot.className = 'plot'
  drawLegend(box, [
    { name: 'few to many barriers', color: '#e0700c' },
    { name: 'exemplar, leads to its trace', color: '#ff4fd8' },
  ])
  const canvas = plot.appendChild(document.createElement('canvas'))
  const width = (canvas.width = plot.clientWidth)
  const height = (canvas.height = plot.clientHeight)
  const context = canvas.getContext('2d')
  const area = { left: 62, top: 6, right: width - 12, bottom: height - 24 }
  const count = high - low + 1
  const cellWidth = (area.right - area.left) / columns
  const cellHeight = (area.bottom - area.top) / count
  context.font = '11px sans-serif'
  for (let row = low; row <= high; row += 1) {
    const y = area.bottom - (row - low + 1) * cellHeight
    cells[row].forEach((value, slot) => {
      if (value <= 0) return
      const strength = Math.sqrt(value / most)
      context.fillStyle = `hsl(${42 - 24 * strength} 95% ${22 + 46 * strength}%)`
      context.fillRect(area.left + slot * cellWidth, y + 0.5, cellWidth + 0.4, cellHeight - 1)
    })
    context.fillStyle = '#9a9aa8'
    context.textAlign = 'right'
    // A row is named by its upper bound, at its upper edge.
    if (count <= 14 || (row - low) % 2 === 0)
      context.fillText(rows[row].le === Infinity ? '+Inf' : format(rows[row].le, defaults.unit), area.left - 6, y + 4)
  }
  context.textAlign = 'center'
  for (let minute = Math.ceil(data.start / 60); minute * 60 < data.end; minute += 1) {
    const x = area.left + ((minute * 60 - data.start) / data.step) * cellWidth
    context.fillText(clock(minute * 60), x, height - 8)
  }
  context.fillStyle = '#ff4fd8'
  for (const [time, value] of panel.exemplars) {
    const row = rows.findIndex(({ le }) => value <= le)
    if (row < low || row > high || time < data.start) continue
    const x = area.left + ((time - data.start) / data.step) * cellWidth
    const y = area.bottom - (row - low + 0.5) * cellHeight
    context.beginPath()
    for (const [dx, dy] of [
      [0, -4],
      [4, 0],
      [0, 4],
      [-4, 0],
    ])
      context.lineTo(x + dx, y + dy)
    context.fill()
  }
}

function drawStates(box, panel, data) {
  const { defaults } = panel.fieldConfig
  const plot = box.appendChild(document.createElement('div'))
  plot.className = 'plot'
  const seen = new Set(panel.series.flatMap(({ points }) => points.map(([, value]) => value)))
  drawLegend(
    box,
    [...seen]
      .sort((a, b) => a - b)
      .map((value) => ({ name: mapped(value, defaults)?.text, color: NAMED[mapped(value, defaults)?.color] })),
  )
  const canvas = plot.appendChild(document.createElement('canvas'))
  const width = (canvas.width = plot.clientWidth)
  const height = (canvas.height = plot.clientHeight)
  const context = canvas.getContext('2d')
  // The query yields one series for each state; a row is a process.
  const rows = new Map()
  for (const { name, points } of panel.series) {
    const row = rows.get(name) ?? rows.set(name, []).get(name)
    row.push(...points)
  }
  const left = 130
  const rowHeight = (height - 22) / rows.size
  const scale = (width - left - 12) / (data.end - data.start)
  context.font = '12px sans-serif'
  context.textBaseline = 'middle'
  ;[...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .forEach(([name, points], index) => {
      const y = index * rowHeight
      context.fillStyle = '#ccccdc'
      context.textAlign = 'right'
      context.fillText(name, left - 8, y + rowHeight / 2)
      points.sort(([a], [b]) => a - b)
      for (let from = 0; from < points.length;) {
        let to = from
        while (
          to + 1 < points.length &&
          points[to + 1][1] === points[from][1] &&
          points[to + 1][0] - points[to][0] <= data.step * 1.5
        )
          to += 1
        const { text, color } = mapped(points[from][1], defaults) ?? {}
        const x = left + (points[from][0] - data.start) * scale
        const length = (points[to][0] - points[from][0] + data.step) * scale
        context.fillStyle = NAMED[color]
        context.fillRect(x, y + 2, Math.min(length, width - 12 - x), rowHeight - 4)
        context.fillStyle = '#fff'
        context.textAlign = 'left'
        if (length > context.measureText(text).width + 10) context.fillText(text, x + 6, y + rowHeight / 2)
        from = to + 1
      }
    })
  context.fillStyle = '#9a9aa8'
  context.textAlign = 'center'
  context.font = '11px sans-serif'
  for (let minute = Math.ceil(data.start / 60); minute * 60 < data.end; minute += 1)
    context.fillText(clock(minute * 60), left + (minute * 60 - data.start) * scale, height - 9)
}

function drawTable(box, panel) {
  const table = box.appendChild(document.createElement('table'))
  for (const { metric, points } of panel.series)
    table.insertAdjacentHTML(
      'beforeend',
      `<tr>${Object.values(metric)
        .map((value) => `<td>${value}</td>`)
        .join('')}<td>${format(points[0][1], 'short', 0)}</td></tr>`,
    )
}

function drawLegend(box, list) {
  const legend = box.appendChild(document.createElement('div'))
  legend.className = 'legend'
  for (const { name, color } of list) {
    const entry = legend.appendChild(document.createElement('b'))
    entry.appendChild(document.createElement('i')).style.background = color
    entry.append(name)
  }
}

function mapped(value, { mappings = [] }) {
  for (const { type, options } of mappings) {
    if (type === 'value' && options[String(value)] !== undefined) return options[String(value)]
    if (type === 'special' && options.match === 'nan' && value === 'NaN') return options.result
  }
  return undefined
}

function stepAt(value, { thresholds }) {
  return (
    thresholds.steps.findLast((step) => step.value === null || step.value === undefined || value >= step.value)
      ?.color ?? 'green'
  )
}

function format(value, unit, decimals) {
  if (value === 'NaN') return 'none ended'
  const round = (number, digits) =>
    Number(number.toFixed(digits)).toLocaleString('en', { maximumFractionDigits: digits })
  const brief = (number) => round(number, decimals ?? (Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2))
  if (unit === 's') {
    if (value === 0) return '0 s'
    if (value < 0.001) return `${round(value * 1e6, 0)} µs`
    if (value < 1 && decimals !== 0) return `${round(value * 1e3, value < 0.01 ? 2 : value < 0.1 ? 1 : 0)} ms`
    return value < 60 ? `${brief(value)} s` : `${round(value / 60, 1)} min`
  }
  if (unit === 'percentunit') return `${round(value * 100, decimals ?? (value < 0.1 ? 1 : 0))}%`
  if (unit === 'ops') return `${brief(value)}/s`
  return brief(value)
}

function clock(seconds) {
  return new Date(seconds * 1_000).toTimeString().slice(0, 5)
}

function alpha(color, share) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16))
  return `rgba(${red},${green},${blue},${share})`
}
