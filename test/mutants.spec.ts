import { beforeAll, describe, expect, test } from 'vitest'
import { MUTANTS } from './mutants/list.ts'
import { runMutants, WHOLE, type Verdict } from './mutants/run.ts'

/** All run at once, beside each other and beside the rest of the suite. */
const LIMIT_MS = 180_000

describe('the suite', () => {
  let verdicts: ReadonlyMap<string, Verdict>
  beforeAll(async () => {
    verdicts = await runMutants(MUTANTS, { named: true })
  }, LIMIT_MS)

  test('is green on the policy as it is', () => {
    expect(verdicts.get(WHOLE)).toMatchObject({ failed: [], broken: [] })
    expect(verdicts.get(WHOLE)?.passed.length).toBeGreaterThan(MUTANTS.length / 2)
  })

  test.each(MUTANTS)('is red when $name', ({ name, tests }) => {
    const { failed, passed, broken } = verdicts.get(name) ?? {}
    expect({ passed, broken }).toEqual({ passed: [], broken: [] })
    expect(failed?.length).toBeGreaterThanOrEqual(tests.length)
  })
})

test('every mutant has a name of its own', () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length)
})

test('a patch that no longer fits the sources is an error, not a mutant that is found', async () => {
  const [first] = MUTANTS
  const stale = {
    ...first,
    name: 'stale',
    patches: [{ file: 'index.ts', from: 'no such text', to: '' }],
  } as (typeof MUTANTS)[number]
  await expect(runMutants([stale], { named: true })).rejects.toThrow(
    'mutant "stale": its patch matches 0 places of src/index.ts',
  )
})
