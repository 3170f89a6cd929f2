import { describe, expect, test } from 'vitest'
import { hasChromium } from './support/browser.ts'
import { createFake } from './support/inspector.ts'
import { openPage } from './support/pages.ts'

const OPEN = {
  id: 7,
  boundary: 'tool',
  guarded: true,
  sessionId: 's',
  delegationDepth: 0,
  pendingEvents: 1,
  strategy: 'default',
  waiting: true,
} as const

describe.skipIf(!hasChromium())('the page for everybody', () => {
  test('every control is reached with the Tab key, shows its focus and works from the keyboard', async () => {
    const fake = await createFake()
    const page = await openPage(fake.port)
    fake.announce({ durationMs: 3 })
    await page.locator('#settled-rows tr', { hasText: 'bash' }).waitFor()
    const reached: string[] = []
    for (let index = 0; index < 40; index += 1) {
      await page.keyboard.press('Tab')
      reached.push(
        await page.evaluate(`(() => {
        const { activeElement: active } = document
        const shown = active.matches('.choice input') ? active.nextElementSibling : active
        const seen = getComputedStyle(shown).outlineStyle !== 'none' || active === document.body
        return (active.id || active.value || active.textContent).trim().slice(0, 20) + (seen ? '' : ' UNSEEN')
      })()`),
      )
    }
    for (const wanted of [
      'pause',
      'waits',
      'last',
      'filter-boundary',
      'filter-outcome',
      'filter-text',
      'Opened',
      'Waited',
      'Decision',
      'api/state',
    ]) {
      expect(reached).toContain(wanted)
    }
    expect(reached.filter((name) => name.includes('UNSEEN'))).toEqual([])
    await page.locator('#pause').focus()
    await page.keyboard.press('Space')
    expect(await page.locator('#pause').getAttribute('aria-pressed')).toBe('true')
    await page.keyboard.press('Space')
    await page.locator('input[value=last]').focus()
    await page.keyboard.press('ArrowRight')
    expect(await page.locator('input[value=slowest]').isChecked()).toBe(true)
  })

  test('landmarks, one main heading, names for every region, a caption for every table, a label for every control', async () => {
    const fake = await createFake()
    const page = await openPage(fake.port)
    fake.announce({})
    await page.locator('#settled-rows tr', { hasText: 'bash' }).waitFor()
    const faults = await page.evaluate(`[
      ...[...document.querySelectorAll('table')].filter((table) => !table.caption?.textContent).map(({ id }) => 'no caption: ' + id),
      ...[...document.querySelectorAll('th')].filter((head) => !head.scope || !head.textContent).map((head) => 'no scope or text: ' + head.outerHTML),
      ...[...document.querySelectorAll('[aria-labelledby]')].filter((region) => !document.getElementById(region.getAttribute('aria-labelledby'))).map(() => 'dangling label'),
      ...[...document.querySelectorAll('[role=img]')].filter((image) => !image.ariaLabel).map(() => 'unnamed image'),
      ...[...document.querySelectorAll('input, select')].filter((control) => control.labels.length === 0).map(({ id }) => 'no label: ' + id),
      ...['header', 'main', 'footer', 'h1'].filter((tag) => document.querySelectorAll(tag).length !== 1),
      ...(document.documentElement.lang === 'en' ? [] : ['no language']),
    ]`)
    expect(faults).toEqual([])
    expect(await page.locator('[aria-live] .counting').count()).toBe(0)
  })

  test('light and dark follow the system, each with readable contrast, and a narrow window has no sideways scroll', async () => {
    const fake = await createFake()
    fake.announce(
      { outcome: 'rejected', flushOutcome: 'rejected', errorType: 'EIO' },
      { outcome: 'aborted', flushOutcome: 'pending' },
      {},
    )
    fake.open = [{ ...OPEN, ageMs: 9_000 }]
    const grounds = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await openPage(fake.port, { colorScheme, viewport: { width: 390, height: 800 } })
      await page.locator('#open-rows tr.bad').waitFor()
      grounds.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
      expect(await page.evaluate(LOW_CONTRAST)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    }
    expect(new Set(grounds).size).toBe(2)
  })
})

/** Texts whose contrast to their background is below WCAG AA. */
const LOW_CONTRAST = `(() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number)
  const luminance = ([r, g, b]) => [r, g, b].map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0)
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor)
      if (color.length === 3 || color[3] > 0) return color
    }
    return [255, 255, 255]
  }
  const texts = [...document.querySelectorAll('body *')].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '') && element.checkVisibility())
  return texts.flatMap((element) => {
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(groundOf(element))]
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    return ratio < 4.5 ? [element.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2)] : []
  })
})()`
