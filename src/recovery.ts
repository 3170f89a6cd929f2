/** Calls that crash recovery answered, read from the seed of a resumed session. */
import type { Session, SessionEvent } from '@deepseek-ai/dsh-session'
import type { RecoveredCall, Recovery } from './barrier.ts'

const RECOVERY_OF: ReadonlyMap<string, Recovery> = new Map([
  ['TOOL_OUTCOME_UNKNOWN', 'unknown'],
  ['TOOL_NOT_STARTED', 'not_started'],
])

/**
 * The calls that this resume, and no earlier one, found without a result.
 *
 * Repairs never appear on `session/event`. They are new only in the turn that the repair itself closed, and only while
 * no earlier resume has left its `session/end-seed` behind them.
 * @param session - a session as `session/created` announces it.
 */
export function recoveredCalls(session: Session): readonly RecoveredCall[] {
  const seedLength = session.firstLiveSeq ?? session.seq
  // A fork is seeded with history that belongs to its parent, where it was counted.
  if (seedLength <= (session.header.seedLength ?? 0)) return []
  // Newer hosts have snapshotEvents() in place of events.
  const host = session as { snapshotEvents?: () => readonly SessionEvent[]; events: readonly SessionEvent[] }
  const seed = (host.snapshotEvents?.() ?? host.events).slice(0, seedLength)
  const last = seed.at(-1)
  if (last?.type !== 'turn/end' || last.data.reason?.kind !== 'interrupted') return []
  const calls: RecoveredCall[] = []
  for (let index = seed.length - 1; index >= 0; index -= 1) {
    const event = seed[index]
    if (event?.type === 'turn/start') break
    if (event?.type !== 'tool/result') continue
    const recovery = RECOVERY_OF.get(event.data.error?.code ?? '')
    if (recovery === undefined) continue
    const { turn, step, message } = event.data
    calls.unshift({ kind: 'recovered', recovery, sessionId: session.id, callId: message.source.callId, turn, step })
  }
  return calls
}
