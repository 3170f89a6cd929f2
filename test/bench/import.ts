/** What importing the built policy costs after the host's own packages, in one process each; part of `npm run bench`. */
import { execFileSync } from 'node:child_process'

const HOST = ['session', 'llm', 'tools', 'agent', 'agent-loop', 'system-prompt', 'session-persistence-jsonl']
const code = (target: string) => `
const start = performance.now()
for (const name of ${JSON.stringify(HOST)}) await import('@deepseek-ai/dsh-' + name)
const host = performance.now()
await import(${JSON.stringify(target)})
console.log(JSON.stringify({ host: host - start, own: performance.now() - host }))`

const TARGETS = { stock: '@deepseek-ai/dsh-session-checkpoint-policy', policy: 'dsh-checkpoint-otel' } as const
const ROUNDS = 15
for (const [name, target] of Object.entries(TARGETS)) {
  const samples = Array.from({ length: ROUNDS }, () => {
    const answer = execFileSync(process.execPath, ['--input-type=module', '-e', code(target)], { encoding: 'utf8' })
    return JSON.parse(answer) as { host: number; own: number }
  })
  const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN
  const own = median(samples.map((sample) => sample.own))
  const ratio = median(samples.map((sample) => sample.own / sample.host))
  console.log(
    `import of ${name} after the host: ${own.toFixed(1)} ms, ${ratio.toFixed(2)} of the host's own import (${ROUNDS} processes)`,
  )
}
