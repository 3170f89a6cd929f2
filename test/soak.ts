/**
 * `npm run soak -- --minutes 10 --agents 200 --seed S`: concurrent agents with subagents, flushes that fail, crawl and hang,
 * cancelled turns, strategies swapped, an exporter without a collector. Exit code 1 when the heap grows or a number differs.
 */
import { InvalidArgumentError, Option } from 'commander'
import { wholeNumber } from '../src/cli/command.ts'
import { parseScript } from './support/script.ts'
import { soak } from './sweep/soak-run.ts'
import { FLAT } from './sweep/soak-verdict.ts'

const MAX_AGENTS = 10_000
const MAX_SEED = 0x7fff_ffff
const { minutes, agents, seed } = parseScript(
  'soak',
  'Load the policy with concurrent agents and faults. Exit code 0: heap flat and numbers equal, 1: not so, 2: a wrong call.',
  (command) =>
    command
      .addOption(new Option('--minutes <n>', 'how long, fractions allowed').default(10).argParser(positive))
      .addOption(new Option('--agents <n>', 'at a time').default(200).argParser(wholeNumber(1, MAX_AGENTS)))
      .addOption(
        new Option('--seed <n>', 'of an earlier run, to repeat it')
          .default(1 + Math.trunc(Math.random() * (MAX_SEED - 1)), 'a new one')
          .argParser(wholeNumber(1, MAX_SEED)),
      ),
).opts<{ minutes: number; agents: number; seed: number }>()

console.log(`${agents} agents for ${minutes} minutes, seed ${seed}`)
const {
  observed,
  scraped,
  heapMiB,
  turns,
  agents: lived,
  injected,
  violations,
} = await soak({ minutes, agents, seed, onSample: (line) => console.log(line) })
console.log(`\n${lived} agents and subagents took ${turns} turns; injected: ${JSON.stringify(injected)}`)
console.log('\n| counted | by the observer | by the scrape |\n|---|--:|--:|')
for (const [key, count] of Object.entries(observed))
  console.log(`| ${key} | ${count} | ${scraped[key as keyof typeof scraped]} |`)
console.log(
  `\nheap after collection: ${heapMiB.map((size) => size.toFixed(0)).join(' ')} MiB; flat means at most ${FLAT.ratio} times and ${FLAT.slackMiB} MiB more`,
)
for (const violation of violations) console.log(`VIOLATION ${violation}`)
console.log(violations.length === 0 ? 'no violation' : `${violations.length} violations`)
process.exitCode = violations.length === 0 ? 0 : 1

function positive(text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new InvalidArgumentError('It must be a positive number.')
}
