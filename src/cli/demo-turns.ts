/** The first half of the demo: ordinary turns, a call cancelled at its barrier, a full disk. */
import { setTimeout as delay } from 'node:timers/promises'
import { STAGED_CODE, STAGED_MESSAGE } from './demo-fault.ts'
import { LiveAgent, type ToolResultEvent } from './demo-live.ts'
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
      options.progress(`${turn} of ${options.turns} turns done: ${duration(wallMs)}, ${duration(waitedMs)} of it at barriers`)
    }
  }
  return { count: options.turns, wallMs, waitedMs, waitedShare: waitedMs / wallMs }
}

/** The disk hangs under the barrier of a call, and the person gives up. */
async function cancelCall({ options, checks }: DemoStage, live: LiveAgent): Promise<void> {
  const callId = 'cancelled-call'
  live.model.push([{ name: 'write', id: callId }])
  const hang = live.fault.hang()
  live.atAdapter = () => hang.arm()
  const turn = live.say('write, while the disk hangs')
  // A policy that does not wait never meets the hang: then the turn ends first.
  await Promise.race([hang.hanging, turn])
  const cancelledAt = performance.now()
  live.agent.cancel({ kind: 'user' })
  await turn
  const idleMs = performance.now() - cancelledAt
  const idleWhilePending = hang.pending()
  hang.release()
  const results = await live.results(callId)
  await live.say('go on')
  const goesOn = (await live.lastTurn()) === 'completed'
  options.progress(`cancelled a call while its flush hung: idle ${duration(idleMs)} later`)
  checks.add(
    'cancelled',
    'A call cancelled at its barrier is answered ABORTED_BEFORE_DISPATCH and never runs',
    {
      'the agent was idle while the flush still hung': idleWhilePending,
      'it has one result': results.length === 1,
      'the code is ABORTED_BEFORE_DISPATCH': results[0]?.data.error?.code === 'ABORTED_BEFORE_DISPATCH',
      'its body was not entered': !live.entered.has(callId),
      'it has one result after the late end of the flush': (await live.results(callId)).length === 1,
      'the next turn completes': goesOn,
    },
    `idle ${duration(idleMs)} after the cancel, with the flush still hanging`,
  )
}

/** The disk is full under the barrier of a call. */
async function refuseCall({ options, checks, barriers }: DemoStage, live: LiveAgent): Promise<void> {
  const callId = 'refused-call'
  live.model.push([{ name: 'write', id: callId }], 'done')
  live.atAdapter = () => live.fault.reject()
  await live.say('write, while the disk is full')
  live.fault.disarm()
  const results = await live.results(callId)
  const goesOn = (await live.lastTurn()) === 'completed'
  const refused = barriers.settled.findIndex((record) => record.callId === callId)
  const { outcome, errorType } = barriers.settled[refused] ?? {}
  const next = barriers.settled[refused + 1]
  options.progress(`a full disk at a call: its body ran ${live.entered.has(callId) ? 'once' : '0 times'}, its barrier was ${outcome ?? 'absent'}`)
  checks.add(
    'rejected-tool',
    'A rejected flush lets no tool body run, the model is told, and the next barrier succeeds',
    {
      'its body was not entered': !live.entered.has(callId),
      'it has one result': results.length === 1,
      "the result carries the disk's message": results[0] !== undefined && textOf(results[0]).includes(STAGED_MESSAGE),
      'its barrier was rejected': outcome === 'rejected',
      [`the error type is ${STAGED_CODE}`]: errorType === STAGED_CODE,
      'the next barrier succeeded': refused >= 0 && next?.outcome === 'dispatched' && next.flushOutcome === 'durable',
      'the turn completed': goesOn,
    },
    `refused with ${STAGED_CODE}, the turn went on`,
  )
}

/** The disk is full under the barrier of a request. */
async function refuseRequest({ options, checks }: DemoStage, live: LiveAgent): Promise<void> {
  const before = live.requests.seen
  live.atStep = () => live.fault.reject()
  await live.say('ask, while the disk is full')
  live.fault.disarm()
  const reached = live.requests.seen - before
  const failed = (await live.lastTurn()) === 'error'
  await live.say('ask again')
  const goesOn = (await live.lastTurn()) === 'completed'
  options.progress(`a full disk at a request: it reached the model ${reached} times, the next turn ${goesOn ? 'completed' : 'failed'}`)
  checks.add(
    'rejected-request',
    'A rejected flush lets no request reach the model, and the next turn succeeds',
    { 'the adapter was not called': reached === 0, 'the turn failed': failed, 'the next turn completed': goesOn },
    'the turn failed without a request, the next one completed',
  )
}

function addTallies({ checks, barriers }: DemoStage, { requests, bodies, harness }: LiveAgent): void {
  checks.add('request', 'No request reaches the model before the log is durable', { [`${requests.text} found it so`]: requests.ok }, `${requests.text} requests`)
  checks.add('tool', 'No tool body runs before its call is on disk', { [`${bodies.text} found it there`]: bodies.ok }, `${bodies.text} bodies`)
  const open = harness.ctx.get('checkpoints')?.open().length
  const ids = new Set(barriers.settled.map(({ id }) => id))
  checks.add(
    'records',
    'Every barrier is told once, and none is left open',
    { 'some were told': ids.size > 0, 'none was told twice': ids.size === barriers.settled.length, 'none is left open': open === 0 },
    `${ids.size} barriers`,
  )
}

/** Wait for writes that were started and left to run; one that does not end is left for the check to name. */
async function allSettled({ harness }: LiveAgent): Promise<void> {
  const checkpoints = harness.ctx.get('checkpoints')
  for (let tries = 0; tries < 100 && (checkpoints?.open().length ?? 0) > 0; tries += 1) await delay(POLL_MS)
}

function textOf({ data }: ToolResultEvent): string {
  return JSON.stringify(data.message.content)
}
