import { appendFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { examine } from './sweep/examine.ts'
import { findLog } from './sweep/outside.ts'
import { SESSION, type Plan } from './sweep/plan.ts'
import { cutPower } from './sweep/power-cut.ts'
import { inFolder, live, sweep } from './sweep/sweep.ts'

/** More of them in CI; the nightly size is `npm run sweep`. */
const ROUNDS = Number(process.env['DSH_CHECKPOINT_SWEEP_ROUNDS'] ?? 40)
const SEED = Number(process.env['DSH_CHECKPOINT_SWEEP_SEED'] ?? 8)
const ROUND_LIMIT_MS = 5_000
const NONE: ReadonlySet<string> = new Set()

/** Live with a fault, die, and look at what is left. */
async function dieAndExamine(plan: Partial<Plan>, between: (plan: Plan) => void = () => {}) {
  return inFolder(async (root, side) => {
    const full: Plan = { root, side, compression: 'none', policy: {}, life: 'first', ...plan }
    const { signal, output } = await live(full)
    expect([signal, output]).toEqual(['SIGKILL', expect.stringContaining('dies ')])
    between(full)
    return examine(full, NONE)
  })
}

test(
  `of ${ROUNDS} agents killed at points all over their lives none loses an effect, releases one unguarded or leaves a log that cannot be used`,
  { timeout: 30_000 + ROUNDS * ROUND_LIMIT_MS },
  async () => {
    const { problems, total } = await sweep({ rounds: ROUNDS, seed: SEED, jobs: 2 })
    expect(problems).toEqual([])
    expect(total).toMatchObject({ rounds: ROUNDS, lost: 0, unguarded: 0, unreadable: 0 })
    expect(total.effects).toBeGreaterThan(ROUNDS)
  },
)

test(
  'D06: with appends of random length every one of eight parallel bodies finds its own call on disk, also when one of them dies',
  { timeout: 60_000 },
  async () => {
    for (let round = 0; round < Math.ceil(ROUNDS / 12); round += 1) {
      // The first body is the single call before the eight.
      const target = { point: 'body:effect', hit: 2 + ((round * 5) % 8) }
      const verdict = await dieAndExamine({ slowSyncMs: 50, target })
      expect(verdict).toMatchObject({ lost: [], unguarded: [], unreadable: [] })
      expect(verdict.recovered).toBeGreaterThanOrEqual(1)
    }
  },
)

test('a policy that does not wait is found out: its effects run before they are on disk, and the log forgets them', async () => {
  const policyModule = new URL('./support/no-wait-policy.ts', import.meta.url).href
  const { unguarded, lost } = await dieAndExamine({
    policyModule,
    slowSyncMs: 50,
    target: { point: 'body:effect', hit: 1 },
  })
  expect(unguarded).toContain('call first-t1-write-0-0 ran before it was on disk')
  expect(lost).toContain('call first-t1-write-0-0 ran and the log has no such call')
})

test('a disk that only says it has synced is found out by a power cut, and by nothing less', async () => {
  const target = { point: 'body:effect', hit: 1 }
  const verdict = await dieAndExamine({ lyingSync: true, target })
  expect(verdict.lost).toEqual([])
  const cut = await dieAndExamine({ lyingSync: true, target }, ({ side }) => cutPower(side, 0))
  expect(cut.lost).toContain('call first-t1-write-0-0 ran and the log has no such call')
})

test('a record glued to a torn one is found out', async () => {
  const { unreadable } = await dieAndExamine({ target: { point: 'body:effect', hit: 1 } }, ({ root }) => {
    appendFileSync(findLog(root, SESSION) ?? '', '{"type":"tool/res{"type":"step/end","seq":99}\n')
  })
  expect(unreadable).toHaveLength(1)
})
