/** The reference of the configuration: current, complete, and with examples that the plugins accept. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { configReference, patchFor, PLUGINS } from '../docs/config.ts'
import manifest from '../package.json' with { type: 'json' }
import { parseEntries } from '../src/cli/doctor/rows.ts'
import { SCOPE_NAME } from '../src/semconv.ts'

test('docs/config.md is what the schemas say; `npm run docs` writes it again', () => {
  expect(readFileSync(new URL('../docs/config.md', import.meta.url), 'utf8')).toBe(configReference())
})

test('every plugin of the package has its section', () => {
  const others = ['./testing', './package.json']
  const subpaths = Object.keys(manifest.exports).filter((path) => !others.includes(path))
  expect(PLUGINS.map(({ name }) => name).toSorted()).toEqual(
    subpaths.map((path) => path.replace('.', SCOPE_NAME)).toSorted(),
  )
})

test.each(PLUGINS.map((plugin) => [plugin.name, plugin] as const))(
  'every field of %s has a type, a rule and a meaning',
  (_, { name, schema }) => {
    const section = configReference().split(`## \`${name}\`\n`)[1]?.split('\n## ')[0] ?? ''
    const rows = section.split('\n').filter((line) => line.startsWith('| `'))
    expect(rows).toHaveLength(Object.keys(schema.dict ?? {}).length)
    for (const row of rows) expect(row).not.toMatch(/\| +\|/)
  },
)

test.each(PLUGINS.map((plugin) => [plugin.name, plugin] as const))(
  'the example of %s is YAML that its plugin accepts',
  (_, plugin) => {
    const [row] = parseEntries(patchFor(plugin))
      .flatMap((entry) => entry.insert ?? [entry])
      .slice(-1)
    expect(row).toMatchObject({ id: plugin.id, config: plugin.example })
    expect(plugin.schema['~standard'].validate(row?.config)).not.toHaveProperty('issues')
    expect(plugin.schema['~standard'].validate({ ...plugin.example, unheardOf: 1 })).toHaveProperty('issues')
  },
)
