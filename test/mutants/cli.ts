/**
 * `npm run mutants [-- WORDS]`: every mutant, or those with all of these words in their names, against the whole of the fast spec
 * files, as a table; about ten minutes for all. Exit code 1 when one survives.
 */
import { parseScript } from '../support/script.ts'
import { MUTANTS } from './list.ts'
import { runMutants, WHOLE } from './run.ts'

/** Spec files that need nothing but this process. */
const SPECS = [
  'guarantees',
  'cancellation',
  'unload',
  'turn',
  'seam',
  'telemetry',
  'adversarial',
  'strategies',
  'differential',
  'crash',
  'lifecycle',
]

const words = parseScript(
  'mutants',
  'Break the sources in one way at a time and see the tests go red. Exit code 0: each was noticed, 1: not so, 2: a wrong call.',
  (command) => command.argument('[words...]', 'only mutants with all of these words in their names'),
).args
const mutants = MUTANTS.filter(({ name }) => words.every((word) => name.includes(word)))
if (mutants.length === 0) {
  console.error(`error: no mutant has ${words.join(' and ')} in its name; there are:`)
  for (const { name } of MUTANTS) console.error(`  ${name}`)
  process.exit(2)
}
const verdicts = await runMutants(mutants, { named: false, specs: SPECS.map((name) => `${name}.spec.ts`) })
let survived = 0
for (const [name, { passed, failed, broken }] of verdicts) {
  const isRed = failed.length > 0
  if (isRed === (name === WHOLE) || broken.length > 0) survived += 1
  console.log(`${String(failed.length).padStart(4)} red, ${String(passed.length).padStart(4)} green  ${name}`)
  for (const message of broken) console.log(`     not loaded: ${message}`)
  if (name === WHOLE) for (const title of failed) console.log(`     ${title}`)
}
process.exitCode = survived === 0 ? 0 : 1
