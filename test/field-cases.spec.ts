import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const FOLDER = new URL('.', import.meta.url)
const CASES = Array.from({ length: 24 }, (_, index) => `D${String(index + 1).padStart(2, '0')}`)

const table = readFileSync(new URL('field-cases/README.md', FOLDER), 'utf8')
/** Rows of the table by case. */
const sections = new Map(
  table
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const rows = [...section.matchAll(/^- `([^`]+)`: (.+)$/gm)].map(([, file = '', title = '']) => ({ file, title }))
      return [section.slice(0, 3), rows] as const
    }),
)

/** Every spec file but this one, with its text. */
const specs = new Map(
  readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.spec.ts') && file !== 'field-cases.spec.ts')
    .map((file) => [file, readFileSync(new URL(file, FOLDER), 'utf8')] as const),
)

/** Whether a test or group of the file has this title, with a number in front or without. */
function hasTitle(text: string, title: string): boolean {
  const literals = [title, title.replaceAll("'", "\\'")].flatMap((form) =>
    ['', ...CASES.flatMap((id) => [`[${id}] `, `${id}: `])].map((number) => number + form),
  )
  return literals.some((literal) => ["'", '"', '`'].some((quote) => text.includes(`${quote}${literal}${quote}`)))
}

test('every field case has its place in the table, and at least one test', () => {
  expect([...sections.keys()]).toEqual(CASES)
  expect([...sections].filter(([, rows]) => rows.length === 0)).toEqual([])
})

test.each(CASES)('the tests that the table names for %s exist under these titles', (id) => {
  const missing = (sections.get(id) ?? []).filter(({ file, title }) => !hasTitle(specs.get(file) ?? '', title))
  expect(missing).toEqual([])
})

test('every test that carries a number is in the table, under that number', () => {
  const unlisted: string[] = []
  for (const [file, text] of specs) {
    for (const [, , bracketed, colon, title = ''] of text.matchAll(
      /(['"`])(?:\[(D\d\d)\] |(D\d\d): )(.*?)(?<!\\)\1/g,
    )) {
      const rows = sections.get(bracketed ?? colon ?? '') ?? []
      if (!rows.some((row) => row.file === file && row.title === title.replaceAll("\\'", "'")))
        unlisted.push(`${file}: ${bracketed ?? colon} ${title}`)
    }
  }
  expect(unlisted).toEqual([])
})

test('a title that does not exist is noticed', () => {
  expect(hasTitle("test('[D01] right', () => {})", 'right')).toBe(true)
  expect(hasTitle("test('[D01] right or wrong', () => {})", 'right')).toBe(false)
})
