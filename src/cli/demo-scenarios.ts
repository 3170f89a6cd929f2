/** Faults at a barrier, staged one at a time: a hang that is cancelled, a full disk at a call and at a request. */
import { STAGED_CODE, STAGED_MESSAGE } from './demo-fault.ts'
import type { LiveAgent, ToolResultEvent } from './demo-live.ts'
import type { DemoStage } from './demo-stage.ts'
import { duration } from './table.ts'

/** The disk hangs under the barrier of a call, and the person gives up. */
export async function cancelCall({ options, checks }: DemoStage, live: LiveAgent): Promise<void> {
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
export async function refuseCall({ options, checks, barriers }: DemoStage, live: LiveAgent): Promise<void> {
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
  options.progress(
    `a full disk at a call: its body ran ${live.entered.has(callId) ? 'once' : '0 times'}, its barrier was ${outcome ?? 'absent'}`,
  )
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
export async function refuseRequest({ options, checks }: DemoStage, live: LiveAgent): Promise<void> {
  const before = live.requests.seen
  live.atStep = () => live.fault.reject()
  await live.say('ask, while the disk is full')
  live.fault.disarm()
  const reached = live.requests.seen - before
  const failed = (await live.lastTurn()) === 'error'
  await live.say('ask again')
  const goesOn = (await live.lastTurn()) === 'completed'
  options.progress(
    `a full disk at a request: it reached the model ${reached} times, the next turn ${goesOn ? 'completed' : 'failed'}`,
  )
  checks.add(
    'rejected-request',
    'A rejected flush lets no request reach the model, and the next turn succeeds',
    { 'the adapter was not called': reached === 0, 'the turn failed': failed, 'the next turn completed': goesOn },
    'the turn failed without a request, the next one completed',
  )
}

function textOf({ data }: ToolResultEvent): string {
  return JSON.stringify(data.message.content)
}
