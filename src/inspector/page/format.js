/** Numbers for people. */

/**
 * Three digits and the unit that fits.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms <= 0) return '0'
  if (ms < 1) return `${digits(ms * 1_000)} µs`
  if (ms < 1_000) return `${digits(ms)} ms`
  if (ms < 120_000) return `${digits(ms / 1_000)} s`
  return age(ms)
}

/**
 * A duration that is a round number, as limits are.
 * @param {number} ms
 */
export function limit(ms) {
  return duration(ms)
    .replace(/(\.\d*?)0+ /, '$1 ')
    .replace('. ', ' ')
}

/**
 * An age that counts: tenths of a second, then minutes and hours.
 * @param {number} ms
 */
export function age(ms) {
  const seconds = Math.max(0, ms) / 1_000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${pad(Math.floor(seconds % 60))} s`
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`
}

/**
 * The same without tenths, for what lies behind.
 * @param {number} ms
 */
export function ago(ms) {
  return ms < 60_000 ? `${Math.floor(Math.max(0, ms) / 1_000)} s` : age(ms)
}

/** @param {number} epochMs */
export function clock(epochMs) {
  const date = new Date(epochMs)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(':')
  return `${time}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

/** @param {number} value */
export function count(value) {
  return COUNT.format(value)
}

const COUNT = new Intl.NumberFormat('en')

/** @param {number} value */
function digits(value) {
  return value >= 100 ? String(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** @param {number} value */
function pad(value) {
  return String(value).padStart(2, '0')
}
