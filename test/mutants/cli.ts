/**
 * `npm run mutants [-- WORDS]`: every mutant, or those with these words in their names, against the whole of the fast spec
 * files, as a table; about ten minutes for all. Exit code 1 when one survives.
 */
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

const wanted = process.argv[2]
const mutants = MUTANTS.filter(({ name }) => wanted === undefined || name.includes(wanted))
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
