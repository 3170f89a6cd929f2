/** Calls of a resumed log that no tool answered, and what recovery says of them. */
import type { Message } from '@deepseek-ai/dsh-llm'
import type { Recovery } from '../barrier.ts'
import type { CallFate } from './session-log.ts'

/** Codes of recovery's answers, and what the policy's records call them. */
export const RECOVERY_OF: Readonly<Record<string, Recovery>> = {
  TOOL_OUTCOME_UNKNOWN: 'unknown',
  TOOL_NOT_STARTED: 'not_started',
}

/** One call whose result the agent never got from its tool. */
export interface ResumedCall {
  readonly callId: string
  readonly toolName: string
  readonly turn: number
  readonly step: number
  /**
   * `now`: this resume answered it. `earlier`: a resume before it did. `withheld`: recovery would answer it, but the
   * session was not resumed. `unresolved`: closed without a result, which nothing repairs.
   */
  readonly state: 'now' | 'earlier' | 'withheld' | 'unresolved'
  /** Recovery's code; absent when unresolved. */
  readonly answer?: string
}

/** Calls that no tool answered, with recovery's answer from the log `after` it. */
export function withAnswers(
  before: readonly CallFate[],
  after: readonly CallFate[],
  state: 'now' | 'withheld',
): readonly ResumedCall[] {
  return before.flatMap((fate): readonly ResumedCall[] => {
    const { callId, toolName, turn, step, code = '' } = fate
    const call = { callId, toolName, turn, step }
    switch (fate.state) {
      case 'unresolved':
        return [{ ...call, state: 'unresolved' }]
      case 'open':
        return [
          {
            ...call,
            state,
            answer: after.find((other) => other.callId === callId && other.turn === turn && other.step === step)?.code,
          },
        ]
      case 'answered':
        return code in RECOVERY_OF ? [{ ...call, state: 'earlier', answer: code }] : []
    }
  })
}

/** Whether every call of a history has its result before the next answer of the model. */
export function isBalanced(messages: readonly Message[]): boolean {
  const waiting = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant' && waiting.size > 0) return false
    for (const block of message.content) {
      if (block.type === 'tool-call') waiting.add(block.id)
      else if (block.type === 'tool-result') waiting.delete(block.toolCallId)
    }
  }
  return waiting.size === 0
}
