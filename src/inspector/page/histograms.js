/**
 * One histogram per boundary, on one scale of time.
 * @import { Distribution, InspectorSummary } from '../state.ts'
 */
import { byId, element } from './dom.js'
import { count, duration, limit } from './format.js'

/** Waiting for longer is drawn as trouble, in seconds. */
const LONG_SECONDS = 1

const ABOUT = {
  step: 'before the next step',
  request: 'before a request',
  tool: 'before a tool call',
  turn: 'at the end of a turn',
}

/**
 * @param {InspectorSummary} state
 * @param {'waits' | 'flushes'} kind
 */
export function showHistograms({ boundaries, bucketsSeconds }, kind) {
  const entries = /** @type {[keyof typeof ABOUT, InspectorSummary['boundaries']['step']][]} */ (
    Object.entries(boundaries)
  )
  const range = rangeOf(entries.map(([, stats]) => stats[kind]))
  const figures = entries.map(([boundary, stats]) => {
    const neverWaits = boundary === 'turn' && kind === 'waits'
    const values = stats[kind]
    const caption = element(
      'figcaption',
      '',
      element('b', '', boundary),
      ' ',
      element('span', 'quiet', ABOUT[boundary]),
      ' ',
      element('span', 'times', count(values.count)),
    )
    const facts = element('p', 'facts', neverWaits ? 'never waits' : factsOf(values, bucketsSeconds))
    const plot = element('div', 'plot', ...(neverWaits ? [] : bars(values, bucketsSeconds, range)))
    plot.role = 'img'
    plot.ariaLabel = neverWaits
      ? 'The end of a turn never waits.'
      : `${boundary}, ${count(values.count)}: ${facts.textContent}`
    return element('figure', '', caption, facts, plot, element('div', 'axis', ...axis(bucketsSeconds, range)))
  })
  byId('histograms').replaceChildren(...figures)
}

/**
 * The buckets that are in use, the same for all.
 * @param {Distribution[]} all
 * @returns {[from: number, to: number]} the second is exclusive.
 */
function rangeOf(all) {
  const used = all.flatMap(({ counts }) => counts.flatMap((value, bucket) => (value > 0 ? [bucket] : [])))
  if (used.length === 0) return [0, all[0]?.counts.length ?? 0]
  const from = Math.max(0, Math.min(...used) - 1)
  return [from, Math.min(all[0]?.counts.length ?? 0, Math.max(Math.max(...used) + 2, from + 10))]
}

/**
 * @param {Distribution} values
 * @param {readonly number[]} bounds
 * @param {[number, number]} range
 */
function bars({ counts }, bounds, [from, to]) {
  const highest = Math.max(1, ...counts)
  return counts.slice(from, to).map((value, index) => {
    const bucket = from + index
    const made = element('div', value === 0 ? 'none' : (bounds[bucket] ?? Infinity) > LONG_SECONDS ? 'long' : '')
    made.style.height = value === 0 ? '0' : `max(3px, ${((100 * value) / highest).toFixed(1)}%)`
    made.title = `${count(value)}: ${limits(bounds, bucket)}`
    return made
  })
}

/**
 * @param {readonly number[]} bounds
 * @param {[number, number]} range
 */
function axis(bounds, [from, to]) {
  return Array.from({ length: to - from }, (_, index) => {
    const bound = bounds[from + index]
    // Powers of ten: every bound would not fit.
    const named = bound !== undefined && Math.abs(Math.log10(bound) - Math.round(Math.log10(bound))) < 1e-9
    return element('span', named ? 'named' : '', named ? limit(bound * 1_000) : '')
  })
}

/**
 * @param {Distribution} values
 * @param {readonly number[]} bounds
 */
function factsOf(values, bounds) {
  if (values.count === 0) return 'none yet'
  return `p50 ${quantile(values, bounds, 0.5)} · p95 ${quantile(values, bounds, 0.95)} · max ${duration(values.maxMs)}`
}

/**
 * The bucket in which a quantile lies, in words.
 * @param {Distribution} values
 * @param {readonly number[]} bounds
 * @param {number} share
 */
function quantile({ counts, count: total, maxMs }, bounds, share) {
  let below = 0
  const bucket = counts.findIndex((value) => (below += value) >= share * total)
  const bound = bounds[bucket]
  return bound === undefined || bound * 1_000 > maxMs ? `≤ ${duration(maxMs)}` : `≤ ${limit(bound * 1_000)}`
}

/**
 * @param {readonly number[]} bounds
 * @param {number} bucket
 */
function limits(bounds, bucket) {
  const [low, high] = [bounds[bucket - 1], bounds[bucket]]
  if (high === undefined) return `over ${limit((low ?? 0) * 1_000)}`
  return low === undefined ? `up to ${limit(high * 1_000)}` : `${limit(low * 1_000)} to ${limit(high * 1_000)}`
}
