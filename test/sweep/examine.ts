/** After the kill: the log read from outside against what the outside world remembers, then the session resumed. */
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { fatesOf, isContiguous } from '../../src/cli/session-log.ts'
import * as policy from '../../src/index.ts'
import type { CheckpointRecord } from '../../src/index.ts'
import { createHarness, createTool } from '../../src/testing/harness.ts'
import { SESSION, type Plan } from './plan.ts'
import { callsOf, findLog, readOutside } from './outside.ts'
import { effectsOf, type Effect } from './side-file.ts'

/** What is wrong, in sentences; empty lists are the promise. */
export interface Verdict {
  /** Effects that happened and that the log forgot, or tells wrongly. */
  readonly lost: string[]
  /** Effects that began before what precedes them was on disk. */
  readonly unguarded: string[]
  /** Sessions that cannot be read, resumed or used. */
  readonly unreadable: string[]
  /** Guarded effects looked at. */
  effects: number
  /** Calls that recovery answered. */
  recovered: number
  /** Effects the policy was told not to guard, or was not mounted for. */
  exempt: number
  /** Bytes after the last complete line or frame. */
  torn: number
}

/** Look at everything a killed life left behind. */
export async function examine(plan: Plan, mayRelease: ReadonlySet<string>): Promise<Verdict> {
  const verdict: Verdict = { lost: [], unguarded: [], unreadable: [], effects: 0, recovered: 0, exempt: 0, torn: 0 }
  const effects = effectsOf(plan.side)
  for (const sessionId of new Set([SESSION, ...effects.map((effect) => effect.sessionId)])) {
    const all = effects.filter((effect) => effect.sessionId === sessionId)
    const guarded = all.filter((effect) => effect.guarded && !(effect.kind === 'call' && mayRelease.has(effect.tool)))
    verdict.effects += guarded.length
    verdict.exempt += all.length - guarded.length
    try {
      await examineSession(plan, sessionId, guarded, verdict)
    } catch (error) {
      verdict.unreadable.push(`${sessionId}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return verdict
}

async function examineSession(
  plan: Plan,
  sessionId: string,
  effects: readonly Effect[],
  verdict: Verdict,
): Promise<void> {
  const path = findLog(plan.root, sessionId)
  const { events, recoverable, torn } = path === undefined ? NOTHING : readOutside(path)
  verdict.torn += torn
  if (!isContiguous(recoverable)) verdict.unreadable.push(`${sessionId}: seq is not contiguous`)
  const recorded = callsOf(events)
  for (const effect of effects) {
    if (effect.kind === 'call') {
      if (!effect.onDisk) verdict.unguarded.push(`call ${effect.callId} ran before it was on disk`)
      if (!recorded.has(effect.callId)) verdict.lost.push(`call ${effect.callId} ran and the log has no such call`)
    } else {
      if (effect.durable < effect.needs)
        verdict.unguarded.push(`a request left with ${effect.durable} of ${effect.needs} events on disk`)
      if (events.length < effect.needs)
        verdict.lost.push(`a request left after ${effect.needs} events, the log has ${events.length}`)
    }
  }
  const { before, after, recovered } = await takeTurn(plan, sessionId, path !== undefined)
  verdict.recovered += recovered.length
  const isRecorded = callsOf(recoverable)
  const expected = unanswered(recoverable)
  const verdicts = new Map(recovered.map((call) => [call.callId, call.recovery]))
  for (const callId of expected) {
    const right = isRecorded.has(callId) ? 'unknown' : 'not_started'
    if (verdicts.get(callId) !== right)
      verdict.lost.push(`call ${callId} was recovered as ${verdicts.get(callId) ?? 'nothing'}, not ${right}`)
  }
  if (recovered.length !== expected.length)
    verdict.lost.push(`${recovered.length} calls recovered, ${expected.length} expected`)
  verdict.lost.push(...untold(before, effects))
  checkTurn(plan, sessionId, after, verdict)
}

/** Resume, or begin where nothing was ever durable; then one turn with a call. */
async function takeTurn({ root, compression }: Plan, sessionId: string, exists: boolean) {
  const harness = await createHarness({ root, compression, tools: [createTool('write', () => 'ok')] })
  try {
    await harness.mount(policy, {})
    const records: CheckpointRecord[] = []
    harness.ctx.checkpoints.observe((record) => records.push(record))
    const { agent } = exists ? await harness.resumeAgent(sessionId) : await harness.createAgent(sessionId)
    const before = [...agent.session.events]
    harness.model.push([{ name: 'write', id: AFTERWARDS }])
    await harness.say(agent, 'go on')
    return {
      before,
      after: [...agent.session.events],
      recovered: records.filter((record) => record.kind === 'recovered'),
    }
  } finally {
    await harness.dispose()
  }
}

const AFTERWARDS = 'call-afterwards'
const NOTHING = { events: [], recoverable: [], torn: 0 }

/**
 * Calls that this resume is the first to tell of: those without a result, and those that an earlier resume had answered
 * on disk when it died itself, before anybody saw the session.
 */
function unanswered(events: readonly SessionEvent[]): string[] {
  const last = events.at(-1)
  const isUnseen = last?.type !== 'turn/end' || last.data.reason.kind === 'interrupted'
  const turn = events.findLast((event) => event.type === 'turn/start')?.data.turn
  const isRepair = (code: string | undefined) => code === 'TOOL_OUTCOME_UNKNOWN' || code === 'TOOL_NOT_STARTED'
  return fatesOf(events)
    .filter((fate) => fate.state === 'open' || (isUnseen && fate.turn === turn && isRepair(fate.code)))
    .map(({ callId }) => callId)
}

/** Effects that the resumed session knows no single result of, or claims to have never begun. */
function untold(events: readonly SessionEvent[], effects: readonly Effect[]): string[] {
  const codes = new Map<string, (string | undefined)[]>()
  for (const event of events) {
    if (event.type !== 'tool/result') continue
    const { callId } = event.data.message.source
    codes.set(callId, [...(codes.get(callId) ?? []), event.data.error?.code])
  }
  return effects.flatMap((effect) => {
    if (effect.kind !== 'call') return []
    const results = codes.get(effect.callId) ?? []
    if (results.length !== 1) return [`call ${effect.callId} ran and has ${results.length} results`]
    return results[0] === 'TOOL_NOT_STARTED' ? [`call ${effect.callId} ran and is told as not started`] : []
  })
}

function checkTurn({ root }: Plan, sessionId: string, after: readonly SessionEvent[], verdict: Verdict): void {
  const last = after.at(-1)
  const kind = last?.type === 'turn/end' ? last.data.reason.kind : last?.type
  if (kind !== 'completed') verdict.unreadable.push(`${sessionId}: the next turn ended with ${String(kind)}`)
  const path = findLog(root, sessionId)
  const onDisk = path === undefined ? NOTHING : readOutside(path)
  if (onDisk.torn > 0 || onDisk.events.length !== after.length || !isContiguous(onDisk.events)) {
    verdict.unreadable.push(
      `${sessionId}: after another turn the log holds ${onDisk.events.length} of ${after.length} events`,
    )
  }
  if (!callsOf(onDisk.events).has(AFTERWARDS)) verdict.unreadable.push(`${sessionId}: the next turn is not in the log`)
}
