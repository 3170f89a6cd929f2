/** The first half of the demo: ordinary turns, a call cancelled at its barrier, a full disk. */
import { setTimeout as delay } from 'node:timers/promises'
import { LiveAgent } from './demo-live.ts'
import { cancelCall, refuseCall, refuseRequest } from './demo-scenarios.ts'
import { within, type DemoStage } from './demo-stage.ts'
import { duration } from './table.ts'

/** Wall time of the ordinary turns. Model and tools cost next to nothing here, so the share is an upper bound. */
export interface TurnTimes {
  readonly count: number
  readonly wallMs: number
  /** Time in which at least one barrier waited. */
  readonly waitedMs: number
  /** From 0 to 1. */
  readonly waitedShare: number
}

/** Lines of progress over all ordinary turns. */
const PROGRESS_LINES = 5
const POLL_MS = 10

/** Run this half. */
export async function runTurns(stage: DemoStage): Promise<{ session: string; path: string; times: TurnTimes }> {
  const live = await LiveAgent.start(stage, 'demo-turns')
  try {
    const times = await takeTurns(stage, live)
    await cancelCall(stage, live)
    await refuseCall(stage, live)
    await refuseRequest(stage, live)
    await live.events()
    await allSettled(live)
    addTallies(stage, live)
    return { session: live.agent.session.id, path: live.path, times }
  } finally {
    live.fault.disarm()
    await within('unloading', live.harness.dispose())
  }
}

async function takeTurns({ options, barriers }: DemoStage, live: LiveAgent): Promise<TurnTimes> {
  let wallMs = 0
  let waitedMs = 0
  const reads = Array.from({ length: options.parallel }, () => ({ name: 'read' }))
  const perLine = Math.ceil(options.turns / PROGRESS_LINES)
  for (let turn = 1; turn <= options.turns; turn += 1) {
    live.model.push([{ name: 'write' }, { name: 'write' }], reads, 'done')
    const from = performance.now()
    await live.say(`turn ${turn}`)
    const to = performance.now()
    wallMs += to - from
    waitedMs += barriers.waitedMs(from, to)
    if (turn % perLine === 0 || turn === options.turns) {
      options.progress(
        `${turn} of ${options.turns} turns done: ${duration(wallMs)}, ${duration(waitedMs)} of it at barriers`,
      )
    }
  }
  return { count: options.turns, wallMs, waitedMs, waitedShare: waitedMs / wallMs }
}

function addTallies({ checks, barriers }: DemoStage, { requests, bodies, harness }: LiveAgent): void {
  checks.add(
    'request',
    'No request reaches the model before the log is durable',
    { [`${requests.text} found it so`]: requests.ok },
    `${requests.text} requests`,
  )
  checks.add(
    'tool',
    'No tool body runs before its call is on disk',
    { [`${bodies.text} found it there`]: bodies.ok },
    `${bodies.text} bodies`,
  )
  const open = harness.ctx.get('checkpoints')?.open().length
  const ids = new Set(barriers.settled.map(({ id }) => id))
  checks.add(
    'records',
    'Every barrier is told once, and none is left open',
    {
      'some were told': ids.size > 0,
      'none was told twice': ids.size === barriers.settled.length,
      'none is left open': open === 0,
    },
    `${ids.size} barriers`,
  )
}

/** Wait for writes that were started and left to run; one that does not end is left for the check to name. */
async function allSettled({ harness }: LiveAgent): Promise<void> {
  const checkpoints = harness.ctx.get('checkpoints')
  for (let tries = 0; tries < 100 && (checkpoints?.open().length ?? 0) > 0; tries += 1) await delay(POLL_MS)
}
