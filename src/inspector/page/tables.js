/**
 * The tables beside the list of settled barriers.
 * @import { InspectorSummary, SeenRecovery } from '../state.ts'
 */
import { byId, cell, counting, element, headCell, numberCell, setText } from './dom.js'
import { count } from './format.js'
import { placeOf, subjectOf } from './verdict.js'

/**
 * @param {InspectorSummary} state
 * @param {number} receivedAt - on the clock of `performance.now()`.
 */
export function showOpen(state, receivedAt) {
  const rows = state.open.map((barrier) => {
    const { ageMs, boundary, waiting, callId = '', sessionId, pendingEvents, strategy } = barrier
    const row = element(
      'tr',
      '',
      cell(counting(receivedAt - ageMs), waiting ? 'agent waits' : 'in the background'),
      cell(boundary),
      cell(subjectOf(barrier), callId),
      cell(sessionId, placeOf(barrier)),
      numberCell(count(pendingEvents)),
      cell(strategy),
    )
    if (waiting) row.dataset['stuckAt'] = String(receivedAt - ageMs + state.stuckAfterMs)
    return row
  })
  const total = Object.values(state.gauges.active).reduce((sum, active) => sum + active, 0)
  if (total > rows.length) rows.push(emptyRow(6, `and ${count(total - rows.length)} more`))
  byId('open-rows').replaceChildren(...(rows.length > 0 ? rows : [emptyRow(6, 'No barrier is open.')]))
  markStuck()
}

/** Mark the open barriers that became stuck since they were drawn. */
export function markStuck() {
  const now = performance.now()
  for (const row of document.querySelectorAll('[data-stuck-at]')) {
    row.classList.toggle('bad', now >= Number(/** @type {HTMLElement} */ (row).dataset['stuckAt']))
  }
}

/** @param {InspectorSummary} state */
export function showOutcomes({ boundaries }) {
  const rows = Object.entries(boundaries)
  const [, first] = rows[0] ?? []
  if (first === undefined) return
  const outcomes = Object.keys(first.outcomes)
  const writes = ['durable', 'unconfirmed', 'pending']
  fill(
    'outcomes',
    ['Boundary', ...outcomes, ...writes.map((write) => `write ${write}`)],
    rows.map(([boundary, stats]) => [
      rowHead(boundary),
      ...Object.entries(stats.outcomes).map(([outcome, value]) => tally(value, outcome !== 'dispatched')),
      ...Object.entries(stats.flushOutcomes).flatMap(([write, value]) =>
        writes.includes(write) ? [tally(value, write === 'unconfirmed')] : [],
      ),
    ]),
  )
}

/** @param {InspectorSummary} state */
export function showStrategies({ strategies, gauges, allowUnguarded }) {
  setText(
    byId('strategies-caption'),
    `Mounted: ${gauges.strategy}. ${allowUnguarded ? 'May release requests and calls whose log is not durable.' : 'Requests and calls always wait for a durable log.'}`,
  )
  fill(
    'strategies',
    ['Strategy', 'flush', 'start', 'skip', 'overruled', 'unguarded'],
    strategies.map(({ name, decisions, overruled, unguarded, reasons }) => {
      const why = Object.entries(reasons).map(([reason, times]) => `${reason} ${count(times)}`)
      const { guarded, threw, invalid } = overruled
      return [
        rowHead(name, why.join(' · ')),
        tally(decisions.flush, false),
        tally(decisions.start, false),
        tally(decisions.skip, false),
        tally(guarded + threw + invalid, threw + invalid > 0),
        tally(unguarded, true),
      ]
    }),
  )
}

/**
 * @param {InspectorSummary} state
 * @param {number} receivedAt
 */
export function showFailures({ failures, now }, receivedAt) {
  fill(
    'failures',
    ['Class', 'times', 'Last', 'What was held'],
    failures.map(({ errorType, count: times, lastAt, last }) => [
      rowHead(errorType),
      tally(times, true),
      element('td', 'when', counting(receivedAt - (now - lastAt), 'ago'), ' ago'),
      cell(subjectOf(last), `${last.sessionId} · ${placeOf(last)}`),
    ]),
    'No failure.',
  )
}

/**
 * @param {InspectorSummary} state
 * @param {readonly SeenRecovery[]} calls
 * @param {number} receivedAt
 */
export function showRecovered({ recovered, now }, calls, receivedAt) {
  const total = recovered.unknown + recovered.not_started
  fill(
    'recovered',
    ['Verdict', 'Seen', 'Call', 'Session'],
    calls.map(({ recovery, seenAt, callId, sessionId, turn, step }) => [
      cell(recovery === 'unknown' ? 'outcome unknown' : 'not started'),
      element('td', 'when', counting(receivedAt - (now - seenAt), 'ago'), ' ago'),
      cell(callId),
      cell(sessionId, `turn ${turn} · step ${step}`),
    ]),
    total === 0 ? 'No call was recovered.' : '',
  )
}

/**
 * @param {string} id
 * @param {string[]} titles
 * @param {HTMLElement[][]} rows
 * @param {string} [empty] - said when there are no rows.
 */
function fill(id, titles, rows, empty = 'Nothing yet.') {
  const table = /** @type {HTMLTableElement} */ (byId(id))
  const titled = titles.map((title, index) => headCell(title, rows[0]?.[index]?.className === 'number' ? 'number' : ''))
  table.tHead?.replaceChildren(element('tr', '', ...titled))
  const made = rows.map((cells) => element('tr', '', ...cells))
  table.tBodies[0]?.replaceChildren(...(made.length > 0 ? made : [emptyRow(titles.length, empty)]))
}

/**
 * @param {string} text
 * @param {string} [more]
 */
function rowHead(text, more = '') {
  const made = element('th', '', text, more === '' ? undefined : element('small', '', more))
  made.scope = 'row'
  return made
}

/**
 * A count: faint at 0, and coloured where any is too many.
 * @param {number} value
 * @param {boolean} bad
 */
function tally(value, bad) {
  const made = numberCell(count(value))
  if (value === 0) made.dataset['tone'] = 'faint'
  else if (bad) made.dataset['tone'] = 'bad'
  return made
}

/**
 * @param {number} columns
 * @param {string} text
 */
export function emptyRow(columns, text) {
  const made = element('td', 'quiet', text)
  made.colSpan = columns
  return element('tr', '', made)
}
