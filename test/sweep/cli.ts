/** `npm run sweep -- --rounds N --seed S`: kills agents and prints what it cost. Exit code 1 unless it cost nothing. */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { sweep, type SweepReport } from './sweep.ts'
import type { Tally } from './tally.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '1500' }, seed: { type: 'string' }, jobs: { type: 'string' } },
})
const MAX_PROBLEMS = 50
const rounds = wholeNumber('rounds', values.rounds)
const seed = wholeNumber('seed', values.seed ?? String(Math.trunc(Math.random() * 0x7fff_ffff)))
const jobs = wholeNumber('jobs', values.jobs ?? String(availableParallelism()))
const PROGRESS_MS = 5_000

console.log(`${rounds} rounds, seed ${seed}, ${jobs} at a time`)
let saidAt = performance.now()
const report = await sweep({
  rounds,
  seed,
  jobs,
  onRound(done, { total, problems }) {
    if (performance.now() - saidAt < PROGRESS_MS && done < rounds) return
    saidAt = performance.now()
    console.log(`${done}/${rounds}: lost ${total.lost}, unguarded ${total.unguarded}, unreadable ${total.unreadable}`)
    if (problems.length > 0) console.log(`  latest: ${problems.at(-1)}`)
  },
})
print(report)
process.exitCode = report.problems.length === 0 ? 0 : 1

function print({ byFault, total, problems }: SweepReport): void {
  const row = (name: string, tally: Tally) =>
    `| ${name} | ${tally.rounds} | ${tally.effects} | ${tally.lost} | ${tally.unguarded} | ${tally.unreadable} |`
  console.log('\n| SIGKILL | rounds | effects checked | effects lost | effects unguarded | sessions unreadable |')
  console.log('|---|--:|--:|--:|--:|--:|')
  for (const [fault, tally] of [...byFault].toSorted(([a], [b]) => (a < b ? -1 : 1))) console.log(row(fault, tally))
  console.log(row('**all**', total))
  console.log(
    `\ncalls answered by recovery: ${total.recovered}; logs with a torn tail: ${total.torn}; ` +
      `effects released on purpose or without a policy: ${total.exempt}; lives that ended first: ${total.survived}`,
  )
  for (const problem of problems.slice(0, MAX_PROBLEMS)) console.log(`- ${problem}`)
  if (problems.length > MAX_PROBLEMS) console.log(`- and ${problems.length - MAX_PROBLEMS} more`)
}

function wholeNumber(flag: string, text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1) return value
  console.error(`--${flag} must be a whole number of at least 1, got ${text}`)
  process.exit(2)
}
