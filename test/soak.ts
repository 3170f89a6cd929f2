/**
 * `npm run soak -- --minutes 10 --agents 200 --seed S`: concurrent agents with subagents, flushes that fail, crawl and hang,
 * cancelled turns, strategies swapped, an exporter without a collector. Exit code 1 when the heap grows or a number differs.
 */
import { parseArgs } from 'node:util'
import { soak } from './sweep/soak-run.ts'
import { FLAT } from './sweep/soak-verdict.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    agents: { type: 'string', default: '200' },
    seed: { type: 'string' },
  },
})
const minutes = positive('minutes', values.minutes)
const agents = positive('agents', values.agents)
const seed = positive('seed', values.seed ?? String(1 + Math.trunc(Math.random() * 0x7fff_fffe)))

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

function positive(flag: string, text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  console.error(`--${flag} must be a positive number, got ${text}`)
  process.exit(2)
}
