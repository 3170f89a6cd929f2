/** `npm run sweep -- --rounds N --seed S`: kills agents and prints what it cost. Exit code 1 unless it cost nothing. */
import { availableParallelism } from 'node:os'
import { Option } from 'commander'
import { wholeNumber } from '../../src/cli/command.ts'
import { parseScript } from '../support/script.ts'
import { sweep, type SweepReport } from './sweep.ts'
import type { Tally } from './tally.ts'

const MAX_ROUNDS = 10_000_000
const MAX_SEED = 0x7fff_ffff
const MAX_JOBS = 256
const MAX_PROBLEMS = 50
const { rounds, seed, jobs } = parseScript(
  'sweep',
  'Kill agents at every point and count what it cost. Exit code 0: nothing, 1: something, 2: a wrong call.',
  (command) =>
    command
      .addOption(new Option('--rounds <n>', 'lives to end').default(1_500).argParser(wholeNumber(1, MAX_ROUNDS)))
      .addOption(
        new Option('--seed <n>', 'of an earlier run, to repeat it')
          .default(1 + Math.trunc(Math.random() * (MAX_SEED - 1)), 'a new one')
          .argParser(wholeNumber(1, MAX_SEED)),
      )
      .addOption(
        new Option('--jobs <n>', 'lives at a time')
          .default(availableParallelism(), 'the number of processors')
          .argParser(wholeNumber(1, MAX_JOBS)),
      ),
).opts<{ rounds: number; seed: number; jobs: number }>()
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
