/** Plugins come and go at random under an agent at work, in processes of their own. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** More of them in CI and at night. */
const ROUNDS = Number(process.env['DSH_CHECKPOINT_LIFECYCLE_ROUNDS'] ?? 1_000)
const SEED = Number(process.env['DSH_CHECKPOINT_SEED'] ?? Math.trunc(Math.random() * 1_000_000))
/** Processes; each begins from nothing and has to end by itself. */
const BATCHES = 4
const AT_ONCE = 2
const CHILD = new URL('lifecycle/child.ts', import.meta.url).pathname
/** A process that something keeps alive is killed after this, and the test is red. */
const BATCH_LIMIT_MS = 30_000 + ROUNDS * 60

interface Result {
  readonly problems: string[]
  readonly bodies: number
  readonly policies: number
  readonly spans: number
}

/** One process. Every second one has a tracer of the host, which counts spans that stay open. */
async function runBatch(batch: number, rounds: number): Promise<Result> {
  const args = [
    '--expose-gc',
    '--unhandled-rejections=strict',
    CHILD,
    String(SEED + batch),
    String(rounds),
    String(batch % 2),
  ]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    timeout: BATCH_LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  expect(stderr).not.toMatch(/MaxListeners|UnhandledPromise/)
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Result
}

test(
  `[D11] ${ROUNDS} rounds of plugins that come and go under an agent, from seed ${SEED} on, leave nothing behind, and the process ends`,
  { timeout: BATCHES * BATCH_LIMIT_MS },
  async () => {
    console.log(`lifecycle: seed ${SEED}, ${ROUNDS} rounds; repeat with DSH_CHECKPOINT_SEED=${SEED}`)
    const rounds = Math.ceil(ROUNDS / BATCHES)
    for (let first = 0; first < BATCHES; first += AT_ONCE) {
      const results = await Promise.all([first, first + 1].map((batch) => runBatch(batch, rounds)))
      for (const { problems, policies, bodies, spans } of results) {
        expect(problems).toEqual([])
        // The rounds did what they are for.
        expect(Math.min(policies, bodies)).toBeGreaterThan(rounds / 4)
        expect(spans === 0 || spans > rounds).toBe(true)
      }
    }
  },
)
