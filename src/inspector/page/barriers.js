/**
 * The list of settled barriers: last or slowest, filtered, sorted.
 * @import { SettledBarrier } from '../../barrier.ts'
 */
import { byId, cell, element, headCell, numberCell, setText } from './dom.js'
import { clock, count, duration } from './format.js'
import { emptyRow } from './tables.js'
import { placeOf, subjectOf } from './verdict.js'

/** Rows that are drawn; the filters find the others. */
const MAX_ROWS = 100

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(barrier: SettledBarrier) => number | string} key - what the column sorts by.
 * @property {(barrier: SettledBarrier) => HTMLElement} show
 * @property {boolean} [number]
 */

/** @type {Column[]} */
const COLUMNS = [
  {
    title: 'Opened',
    key: (barrier) => barrier.openedAt,
    show: (barrier) => cell(clock(barrier.openedAt), traceOf(barrier)),
  },
  { title: 'Boundary', key: (barrier) => barrier.boundary, show: (barrier) => cell(barrier.boundary) },
  { title: 'What was held', key: subjectOf, show: (barrier) => cell(subjectOf(barrier), barrier.callId) },
  {
    title: 'Session',
    key: (barrier) => barrier.sessionId,
    show: (barrier) => cell(barrier.sessionId, placeOf(barrier)),
  },
  {
    title: 'Outcome',
    key: (barrier) => barrier.outcome,
    show: (barrier) => cell(badge(barrier.outcome), barrier.unguarded ? 'unguarded' : ''),
  },
  {
    title: 'Write',
    key: (barrier) => barrier.flushOutcome,
    show: (barrier) => cell(badge(barrier.flushOutcome), barrier.errorType),
  },
  {
    title: 'Waited',
    number: true,
    key: (barrier) => barrier.durationMs,
    show: (barrier) => numberCell(duration(barrier.durationMs)),
  },
  {
    title: 'Write took',
    number: true,
    key: (barrier) => barrier.flushMs ?? -1,
    show: (barrier) =>
      numberCell(barrier.flushMs === undefined ? '–' : duration(barrier.flushMs), barrier.sharedFlush ? 'shared' : ''),
  },
  {
    title: 'Events',
    number: true,
    key: (barrier) => barrier.events,
    show: (barrier) => numberCell(count(barrier.events)),
  },
  {
    title: 'Decision',
    key: (barrier) => barrier.strategy + barrier.decision,
    show: (barrier) => cell(barrier.decision, decisionOf(barrier)),
  },
]

/**
 * Draw the list, now and whenever a control is used.
 * @param {() => { last: readonly SettledBarrier[], slowest: readonly SettledBarrier[], settled: number }} read
 */
export function createBarrierList(read) {
  const boundary = /** @type {HTMLSelectElement} */ (byId('filter-boundary'))
  const outcome = /** @type {HTMLSelectElement} */ (byId('filter-outcome'))
  const text = /** @type {HTMLInputElement} */ (byId('filter-text'))
  /** Rows never change: each is built once. @type {Map<SettledBarrier, HTMLElement>} */
  let rows = new Map()
  /** @type {{ column: Column, descending: boolean } | undefined} */
  let order

  const show = () => {
    const { last, slowest, settled } = read()
    const list = isSlowest() ? slowest : last
    const wanted = text.value.trim().toLowerCase()
    const found = list.filter((barrier) => {
      if (boundary.value !== '' && barrier.boundary !== boundary.value) return false
      if (outcome.value === 'trouble' ? !isTrouble(barrier) : outcome.value !== '' && barrier.outcome !== outcome.value)
        return false
      return wanted === '' || wordsOf(barrier).includes(wanted)
    })
    const { column, descending } = order ?? {}
    if (column !== undefined) found.sort((a, b) => (descending ? -1 : 1) * compare(column.key(a), column.key(b)))
    const shown = found.slice(0, MAX_ROWS)
    rows = new Map(shown.map((barrier) => [barrier, rows.get(barrier) ?? rowOf(barrier)]))
    const nothing = list.length === 0 ? 'No barrier has settled yet.' : 'No barrier matches.'
    byId('settled-rows').replaceChildren(...(shown.length > 0 ? rows.values() : [emptyRow(COLUMNS.length, nothing)]))
    setText(
      byId('settled-count'),
      `showing ${count(shown.length)} of ${count(found.length)} · ${count(settled)} settled in all`,
    )
  }

  const heads = COLUMNS.map((column) => {
    const button = element('button', 'sort', column.title)
    button.type = 'button'
    const head = headCell('', column.number === true ? 'number' : '')
    head.append(button)
    button.addEventListener('click', () => {
      const descending =
        order?.column === column ? !order.descending : column.number === true || column.title === 'Opened'
      order = { column, descending }
      for (const other of heads) other.removeAttribute('aria-sort')
      head.ariaSort = descending ? 'descending' : 'ascending'
      show()
    })
    return head
  })
  byId('settled-head').replaceChildren(...heads)
  for (const control of [boundary, outcome]) control.addEventListener('change', show)
  text.addEventListener('input', show)
  for (const choice of document.querySelectorAll('input[name=list]')) choice.addEventListener('change', show)
  return { show }
}

function isSlowest() {
  return document.querySelector('input[name=list][value=slowest]:checked') !== null
}

/** @param {SettledBarrier} barrier */
function isTrouble({ outcome, errorType, unguarded, overruled }) {
  return outcome !== 'dispatched' || errorType !== undefined || unguarded || overruled !== undefined
}

/** @param {SettledBarrier} barrier */
function wordsOf(barrier) {
  const { sessionId, callId, errorType, strategy, agentPreset, traceId } = barrier
  return [subjectOf(barrier), sessionId, callId, errorType, strategy, agentPreset, traceId].join(' ').toLowerCase()
}

/** @param {SettledBarrier} barrier */
function rowOf(barrier) {
  return element('tr', isTrouble(barrier) ? 'trouble' : '', ...COLUMNS.map(({ show }) => show(barrier)))
}

/** @param {string} word */
function badge(word) {
  return element('span', `badge ${word}`, word)
}

/** @param {SettledBarrier} barrier */
function traceOf({ traceId }) {
  return traceId === undefined ? '' : `trace ${traceId.slice(0, 8)}`
}

/** @param {SettledBarrier} barrier */
function decisionOf({ strategy, reason, overruled }) {
  return [strategy, reason, overruled === undefined ? undefined : `overruled: ${overruled}`]
    .filter((part) => part !== undefined)
    .join(' · ')
}

/**
 * @param {number | string} a
 * @param {number | string} b
 */
function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}
