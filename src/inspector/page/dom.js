/** Elements. Texts come from logs, so they are only ever set as text. */
import { age, ago } from './format.js'

/**
 * An element of the document.
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`no element ${id}`)
  return found
}

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} classes
 * @param {...(Node | string | undefined)} children - a string becomes a text node.
 */
export function element(tag, classes, ...children) {
  const made = document.createElement(tag)
  if (classes !== '') made.className = classes
  made.append(...children.filter((child) => child !== undefined))
  return made
}

/**
 * Set a text, unless it is there already: screen readers read what is set.
 * @param {Element} target
 * @param {string} text
 */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text
}

/**
 * A table cell with a second, quieter line.
 * @param {Node | string} main
 * @param {string} [more]
 */
export function cell(main, more = '') {
  return element('td', '', main, more === '' ? undefined : element('small', '', more))
}

/**
 * @param {string} text
 * @param {string} [more]
 */
export function numberCell(text, more = '') {
  const made = cell(text, more)
  made.className = 'number'
  return made
}

/**
 * A column's head.
 * @param {string} title
 * @param {string} [classes]
 */
export function headCell(title, classes = '') {
  const made = element('th', classes, title)
  made.scope = 'col'
  return made
}

/**
 * A text that counts by itself.
 * @param {number} since - on the clock of `performance.now()`.
 * @param {'age' | 'ago'} style
 */
export function counting(since, style = 'age') {
  const made = element('span', 'counting')
  made.dataset['since'] = String(since)
  made.dataset['style'] = style
  tickOne(made, performance.now())
  return made
}

/** Let every {@link counting} text of the document catch up. */
export function tick() {
  const now = performance.now()
  for (const target of document.querySelectorAll('.counting')) tickOne(/** @type {HTMLElement} */ (target), now)
}

/**
 * @param {HTMLElement} target
 * @param {number} now
 */
function tickOne(target, now) {
  const ms = now - Number(target.dataset['since'])
  setText(target, target.dataset['style'] === 'ago' ? ago(ms) : age(ms))
}
