/**
 * Puts the page together: receives, keeps, draws.
 * @import { InspectorState } from '../state.ts'
 */
import { createBarrierList } from './barriers.js'
import { connect } from './connection.js'
import { byId, counting, element, setText, tick } from './dom.js'
import { clock, count, duration, limit } from './format.js'
import { showHistograms } from './histograms.js'
import { markStuck, showFailures, showOpen, showOutcomes, showRecovered, showStrategies } from './tables.js'
import { judge } from './verdict.js'

/** Ages are shown in tenths of a second. */
const TICK_MS = 100

const LOST = {
  level: 'bad',
  headline: 'No answer from the agent process',
  detail: 'It ended, was reloaded, or its event loop is blocked. Trying again.',
}
const FULL = {
  level: 'watch',
  headline: 'Too many of these pages are open',
  detail: 'The agent process serves no more at a time. Close one; trying again.',
}

/** @type {InspectorState | undefined} */
let state
let receivedAt = 0
/** @type {'live' | 'lost' | 'full'} */
let status = 'live'
let paused = false
let planned = false

const list = createBarrierList(() => state ?? { last: [], slowest: [], settled: 0 })

connect({
  onState(everything) {
    state = everything
    received()
  },
  onUpdate(update) {
    if (state === undefined) return
    const last = [...update.last, ...state.last].slice(0, update.bounds.last)
    // A list that did not change is not in the update.
    state = { ...state, ...update, last }
    received()
  },
  onStatus(current) {
    status = current
    setText(byId('connection'), current)
    byId('connection').dataset['status'] = current
    document.body.classList.toggle('lost', current !== 'live')
    showVerdict()
  },
})

function received() {
  receivedAt = performance.now()
  if (planned || paused) return
  planned = true
  requestAnimationFrame(() => {
    planned = false
    show()
  })
}

function show() {
  if (state === undefined || paused) return
  const { pid, startedAt, gauges, bounds, stuckAfterMs } = state
  setText(byId('about'), `process ${pid} · strategy ${gauges.strategy} · since ${clock(startedAt).slice(0, 8)}`)
  setText(byId('stuck-after'), limit(stuckAfterMs))
  setText(
    byId('bounds'),
    `Kept: the last ${bounds.last} barriers, the ${bounds.slowest} slowest, the last ${bounds.recoveredCalls} recovered calls.`,
  )
  showTiles(state)
  showOpen(state, receivedAt)
  showTimes()
  list.show()
  showOutcomes(state)
  showStrategies(state)
  showFailures(state, receivedAt)
  showRecovered(state, state.recoveredCalls, receivedAt)
  showVerdict()
}

/** @param {InspectorState} current */
function showTiles({ gauges, boundaries, settled, recovered }) {
  const all = Object.values(boundaries)
  /** @param {'rejected' | 'timeout' | 'aborted'} outcome */
  const sum = (outcome) => all.reduce((total, { outcomes }) => total + outcomes[outcome], 0)
  const open = Object.values(gauges.active).reduce((total, active) => total + active, 0)
  const waitedMs = all.reduce((total, { waits }) => total + waits.sumMs, 0)
  const failed = sum('rejected') + sum('timeout')
  byId('tiles').replaceChildren(
    tile('open now', count(open)),
    tile('oldest open', gauges.oldestAgeMs === 0 ? 'none' : counting(receivedAt - gauges.oldestAgeMs)),
    tile(
      'log behind by',
      gauges.unflushedOldestAgeMs === 0 ? '0 s' : counting(receivedAt - gauges.unflushedOldestAgeMs),
    ),
    tile('failed writes in a row', count(gauges.consecutiveFailures), gauges.consecutiveFailures > 0),
    tile('rejected or timed out', count(failed), failed > 0),
    tile('aborted', count(sum('aborted'))),
    tile('settled', count(settled)),
    tile('waited in all', duration(waitedMs)),
    tile('recovered calls', count(recovered.unknown + recovered.not_started)),
  )
}

/**
 * @param {string} title
 * @param {Node | string} value
 * @param {boolean} [bad]
 */
function tile(title, value, bad = false) {
  return element('div', bad ? 'bad' : '', element('dt', '', title), element('dd', '', value))
}

function showTimes() {
  const flushes = document.querySelector('input[name=time][value=flushes]:checked') !== null
  if (state !== undefined) showHistograms(state, flushes ? 'flushes' : 'waits')
}

function showVerdict() {
  if (state === undefined && status === 'live') return
  const verdict =
    status === 'live' && state !== undefined
      ? judge(state, performance.now() - receivedAt)
      : status === 'full'
        ? FULL
        : LOST
  byId('verdict').className = `verdict ${verdict.level}`
  setText(byId('verdict-headline'), verdict.headline)
  setText(byId('verdict-detail'), verdict.detail)
  document.title = verdict.level === 'bad' ? `(!) ${verdict.headline}` : 'Checkpoints'
}

for (const choice of document.querySelectorAll('input[name=time]')) choice.addEventListener('change', showTimes)
byId('pause').addEventListener('click', () => {
  paused = !paused
  byId('pause').ariaPressed = String(paused)
  document.body.classList.toggle('paused', paused)
  show()
})
setInterval(() => {
  if (paused || status !== 'live' || state === undefined) return
  tick()
  markStuck()
  showVerdict()
}, TICK_MS)
