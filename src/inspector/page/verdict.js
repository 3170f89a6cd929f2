/**
 * What a stranger wants to know first: is anything wrong, and what.
 * @import { InspectorSummary } from '../state.ts'
 * @import { BarrierSubject } from '../../barrier.ts'
 */
import { age, count } from './format.js'

/** A barrier that is open for less is the normal course of things. */
const NOTABLE_MS = 1_000
/** A failure stays in the headline for this long. */
const RECENT_MS = 60_000

/**
 * @typedef {object} Verdict
 * @property {'good' | 'watch' | 'bad'} level
 * @property {string} headline - without a number that counts: it is read aloud when it changes.
 * @property {string} detail
 */

/**
 * @param {InspectorSummary} state
 * @param {number} elapsedMs - since the state was received.
 * @returns {Verdict}
 */
export function judge(state, elapsedMs) {
  const { gauges, failures, settled, stuckAfterMs } = state
  const open = state.open.map((barrier) => ({ ...barrier, ageMs: barrier.ageMs + elapsedMs }))
  const waiting = open.filter((barrier) => barrier.waiting)
  const stuck = waiting.filter((barrier) => barrier.ageMs >= stuckAfterMs)
  const [oldest] = stuck
  if (oldest !== undefined) {
    return {
      level: 'bad',
      headline: stuck.length === 1 ? 'An agent is stuck at a barrier' : `${stuck.length} agents are stuck at a barrier`,
      detail: `${subjectOf(oldest)} in session ${oldest.sessionId} has been waiting for its log for ${age(oldest.ageMs)}. Cancelling the agent ends the wait.`,
    }
  }
  const [failure] = failures
  if (gauges.consecutiveFailures > 0 && failure !== undefined) {
    return {
      level: 'bad',
      headline: 'Writes of the session log fail',
      detail: `${count(gauges.consecutiveFailures)} in a row, the last with ${failure.errorType}. Requests and tool calls are held back until a write succeeds.`,
    }
  }
  const background = open.find((barrier) => !barrier.waiting && barrier.ageMs >= stuckAfterMs)
  if (background !== undefined) {
    return {
      level: 'watch',
      headline: 'A write in the background does not end',
      detail: `${subjectOf(background)} in session ${background.sessionId}, for ${age(background.ageMs)} so far. No agent waits for it.`,
    }
  }
  const [slow] = waiting.filter((barrier) => barrier.ageMs >= NOTABLE_MS)
  if (slow !== undefined) {
    return {
      level: 'watch',
      headline: 'An agent is waiting for its log',
      detail: `${subjectOf(slow)} in session ${slow.sessionId}, for ${age(slow.ageMs)} so far.`,
    }
  }
  if (failure !== undefined && state.now + elapsedMs - failure.lastAt < RECENT_MS) {
    return {
      level: 'watch',
      headline: 'A barrier failed within the last minute',
      detail: `${subjectOf(failure.last)} in session ${failure.last.sessionId}, ${failure.errorType}. Writes since then succeeded.`,
    }
  }
  if (settled === 0)
    return {
      level: 'good',
      headline: 'Nothing has happened yet',
      detail: 'No barrier has settled since the inspector was loaded.',
    }
  return {
    level: 'good',
    headline: 'Nothing is stuck and writes succeed',
    detail: `${count(settled)} barriers settled.`,
  }
}

/**
 * What a barrier holds, in words.
 * @param {BarrierSubject} barrier
 */
export function subjectOf({ boundary, toolName, model, purpose }) {
  switch (boundary) {
    case 'tool':
      return `Tool call ${toolName ?? ''}`.trim()
    case 'request':
      return purpose === undefined ? `Request to ${model ?? 'the model'}` : `Request for ${purpose}`
    case 'step':
      return 'Next step'
    case 'turn':
      return 'Write at the end of a turn'
  }
}

/**
 * Where a barrier is, in few words.
 * @param {BarrierSubject} barrier
 */
export function placeOf({ agentPreset, delegationDepth, turn, step }) {
  return [
    agentPreset,
    delegationDepth > 0 ? `subagent, depth ${delegationDepth}` : undefined,
    turn === undefined ? undefined : `turn ${turn}`,
    step === undefined ? undefined : `step ${step}`,
  ]
    .filter((part) => part !== undefined)
    .join(' · ')
}
