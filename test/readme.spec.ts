/** The README in two languages: block by block the same code, links, numbers and shape; and nothing it names is missing. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

/** What a heading, paragraph, list item, table row or fenced block has in common with its translation. */
interface Block {
  readonly kind: string
  readonly code: readonly string[]
  readonly links: readonly string[]
  readonly numbers: readonly string[]
  readonly bold: number
}

// Longer than usual: the splitter serves this comparison alone.
const ROOT = new URL('../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const all = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([match, group]) => group ?? match)

const FENCE = /^ *```.*\n[^]*?^ *```$/gm
const LINK = /\]\(([^)\s]+)\)/g
const ANCHOR = /<a id="([^"]+)"><\/a>/g
const SWITCH = { en: 'English | [中文](README.zh.md)', zh: '[English](README.md) | 中文' }

const english = read('README.md')
const chinese = read('README.zh.md')
/** Without what only one of the two has: the language line, and anchors that keep English fragments valid. */
const shared = (text: string): string =>
  text
    .replace(SWITCH.en, '')
    .replace(SWITCH.zh, '')
    .replace(ANCHOR, '')
    .replace(/\n{3,}/g, '\n\n')

/** The source text of every block, in order; wrapped lines belong to the block they continue. */
function split(text: string): string[] {
  const starts = /^(?:#+ |- |\d+\. |\|)/
  const parts: string[] = []
  let open = false
  for (const piece of shared(text).split(new RegExp(`(${FENCE.source})`, 'gm'))) {
    if (piece.startsWith('```')) {
      parts.push(piece)
      open = false
      continue
    }
    for (const line of piece.split('\n')) {
      if (line.trim() === '') open = false
      else if (open && !starts.test(line)) parts.push(`${parts.pop()}\n${line}`)
      else open = parts.push(line) > 0
    }
  }
  return parts
}

/** Order inside a block is free, as word order differs between languages. */
function describeBlock(source: string): Block {
  if (source.startsWith('```')) return { kind: 'fence', code: [source], links: [], numbers: [], bold: 0 }
  const prose = source.replace(/`[^`]+`/g, '`').replace(LINK, ']')
  const [marker = ''] = /^(?:#+ |- |\d+\. |!|\|)/.exec(source) ?? []
  return {
    kind: marker === '|' ? `row of ${prose.split('|').length - 2}` : marker.trim() || 'paragraph',
    code: all(source, /`([^`]+)`/g)
      .map((code) => code.replace(/\s+/g, ' '))
      .toSorted(),
    links: all(source, LINK).toSorted(),
    numbers: all(prose, /\d+(?:[.,]\d+)*/g).toSorted(),
    bold: all(prose, /\*\*[^*]+\*\*/g).length,
  }
}

/** Length of the prose in words; a Chinese character is about two thirds of one. */
const weight = (source: string): number => {
  const prose = source.replace(/`[^`]+`/g, '').replace(LINK, ']')
  return all(prose, /[a-z]+/gi).length + all(prose, /\p{Script=Han}/gu).length / 1.6
}

const shape = (text: string): Block[] => split(text).map(describeBlock)

/** Sections by heading: a difference is reported below the heading where it is. */
function sections(text: string): Block[][] {
  const found: Block[][] = []
  for (const block of shape(text)) {
    if (block.kind.startsWith('#')) found.push([block])
    else found.at(-1)?.push(block)
  }
  return found
}

describe('README.zh.md', () => {
  const titles = all(english.replace(FENCE, ''), /^#+ (.*)$/gm)
  const [original, translated] = [sections(english), sections(chinese)]

  test('has the same headings, level by level', () => {
    const levels = (from: Block[][]): unknown[] => from.map(([heading]) => heading?.kind)
    expect(levels(translated)).toEqual(levels(original))
    expect(original).toHaveLength(titles.length)
  })

  test.each(titles.map((title, index) => [title, index] as const))(
    'says the same code, links, numbers and rows below "%s"',
    (_, index) => expect(translated[index]).toEqual(original[index]),
  )

  test('has each block in Chinese, about as long as the original', () => {
    const [from, to] = [split(english), split(chinese)]
    for (const [index, source] of from.entries()) {
      const words = weight(source)
      if (source.startsWith('```') || words < 12) continue
      const translation = to[index] ?? ''
      expect(translation, source).toMatch(/\p{Script=Han}/u)
      // Measured over the text: 0.77 to 1.55. A sentence that only one of the two has leaves this range in a short block.
      expect(weight(translation) / words, source).toBeGreaterThan(0.7)
      expect(weight(translation) / words, source).toBeLessThan(1.6)
    }
  })

  test('and the original name each other below the title', () => {
    expect(english.split('\n').slice(1, 4)).toEqual(['', SWITCH.en, ''])
    expect(chinese.split('\n').slice(1, 4)).toEqual(['', SWITCH.zh, ''])
  })
})

describe('a change in one language alone', () => {
  test.each([
    ['a number', 'Node 22', 'Node 23'],
    ['a command in a code block', 'npm install && npm start ', 'npm install && npm run demo '],
    ['a name in the prose', '`groupDelayMs`', '`groupDelay`'],
    ['a link', '(docs/tune.md)', '(docs/tuning.md)'],
    ['a picture', '(docs/inspector.png)', '(docs/page.png)'],
    ['the level of a heading', '\n### `pipelined`', '\n## `pipelined`'],
    ['a row of a table', '\n| `overdueMs`', '\n| `more` | | |\n| `overdueMs`'],
    ['a column of a table', '|---|--:|--:|--:|\n| ', '|---|--:|--:|--:|--:|\n| '],
    ['an item of a list', '\n11. ', '\n'],
    ['a paragraph', '\n\nMIT', '\n\nOne more.\n\nMIT'],
  ])('is noticed: %s', (_, before, after) => {
    for (const [changed, other] of [
      [english, chinese],
      [chinese, english],
    ] as const) {
      expect(changed).toContain(before)
      expect(shape(changed.replace(before, after))).not.toEqual(shape(other))
    }
  })

  test('is none when only line breaks and the order of the words differ', () => {
    const text = '# A\n\n- `b` takes 1 ms,\n  [c](d) 2 ms\n'
    expect(shape('# 一\n\n- [三](d) 2 毫秒，`b` 1 毫秒\n')).toEqual(shape(text))
  })
})

const pages = ['.', 'docs', 'dashboards'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, ROOT))
    .filter((name) => name.endsWith('.md'))
    .map((name) => posix.join(folder, name)),
)

/** The fragment that GitHub gives a heading. */
const fragment = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

describe.each(pages)('%s', (page) => {
  const text = read(page)

  test('links to what exists', () => {
    for (const link of all(text.replace(FENCE, ''), LINK)) {
      if (/^[a-z]+:/.test(link)) continue
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? page : posix.join(posix.dirname(page), path)
      expect(existsSync(new URL(target, ROOT)), `${link} in ${page}`).toBe(true)
      if (anchor === undefined) continue
      const there = read(target).replace(FENCE, '')
      const anchors = [...all(there, /^#+ (.*)$/gm).map(fragment), ...all(there, ANCHOR)]
      expect(anchors, `${link} in ${page}`).toContain(anchor)
    }
  })

  test('names npm scripts that exist', () => {
    const named = [...all(text, /npm run (?:--silent )?([\w:]+)/g), ...all(text, /npm (start|test)\b/g)]
    expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(named))
  })
})
