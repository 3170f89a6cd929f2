/** Asks the strategy itself, without a host around it: what it answers, how fast, and whether it throws. */
import type { Barrier } from '../../barrier.ts'
import { BOUNDARIES } from '../../semconv.ts'
import { MAX_DELAY_MS, MAX_TIMER_MS, readDecision, type CheckpointStrategy } from '../../strategy.ts'
import type { Findings } from '../report.ts'
import { Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'
import { createRandom, describeError } from '../wait.ts'

/** Barriers it is asked about. */
const QUESTIONS = 500
/** Mean time of a `decide` that is still cheap on a busy machine. */
const MAX_MEAN_MS = 1

export async function decisions(subject: Subject, findings: Findings): Promise<void> {
  await Stage.run(subject, findings, async ({ harness }) => {
    const strategy = harness.ctx.get('checkpointStrategy') as CheckpointStrategy
    const random = createRandom(subject.seed)
    const startedAt = performance.now()
    for (let question = 0; question < QUESTIONS; question += 1)
      judge(strategy, createBarrier(subject, random), subject, findings)
    const meanMs = (performance.now() - startedAt) / QUESTIONS
    if (meanMs > MAX_MEAN_MS) {
      findings.add(
        'slow decide',
        `decide takes ${meanMs.toFixed(1)} ms on average; it runs on the agent's path and must be cheap`,
      )
    }
  })
}

function judge(strategy: CheckpointStrategy, barrier: Barrier, subject: Subject, findings: Findings): void {
  const { boundary, guarded, pendingEvents, toolName } = barrier
  const where = `\`${boundary}\`` + (toolName === undefined ? '' : ` of tool "${toolName}"`)
  let given: unknown
  try {
    given = strategy.decide(barrier)
  } catch (error) {
    findings.add(
      'throws',
      `decide threw at ${where}: ${describeError(error)}. The policy would flush; decide must not throw`,
    )
    return
  }
  const answer = readDecision(given)
  if (answer === undefined) {
    findings.add('nonsense', `decide answered ${nonsense(given)} at ${where}`)
    return
  }
  if (answer.kind === 'flush') {
    if ((answer.delayMs ?? 0) > subject.maxWaitMs) {
      findings.add(
        'delay',
        `decide delays the flush at ${where} by up to ${answer.delayMs} ms (maxWaitMs is ${subject.maxWaitMs}): ` +
          'the agent would stand still',
      )
    }
    return
  }
  if (guarded && pendingEvents > 0 && !subject.mayRelease.has(toolName ?? '')) {
    findings.add(
      'lets go',
      `decide answered "${answer.kind}" at ${where} with ${pendingEvents} event(s) not known to be durable: ` +
        'what it releases could run without a trace in the log. Answer "flush", or name the tool in mayRelease',
    )
  }
}

/** Why an answer is no decision. */
function nonsense(answer: unknown): string {
  if (typeof answer !== 'object' || answer === null) return `${String(answer)}, which is no decision`
  if ('then' in answer) return 'a promise: decide is synchronous and returns data'
  const { kind, delayMs, timeoutMs, reason } = answer as Record<string, unknown>
  switch (kind) {
    case 'flush':
      return `a flush with delayMs ${String(delayMs)} and timeoutMs ${String(timeoutMs)}; they must be numbers up to ${MAX_DELAY_MS} and ${MAX_TIMER_MS}`
    case 'skip':
      return `a skip with reason ${JSON.stringify(reason)}; it must be a sentence`
    default:
      return `an object of kind ${JSON.stringify(kind)}; the kinds are "flush", "start" and "skip"`
  }
}

function createBarrier({ exclusive, parallel }: Subject, random: () => number): Barrier {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const boundary = pick(BOUNDARIES)
  const turn = 1 + Math.floor(random() * 50)
  return Object.freeze({
    boundary,
    guarded: boundary === 'request' || boundary === 'tool',
    sessionId: `session-${Math.floor(random() * 5)}`,
    agentId: pick([undefined, 'main', 'agent-1']),
    agentPreset: pick([undefined, 'default']),
    delegationDepth: pick([0, 0, 1, 2]),
    turn: pick([turn, turn, undefined]),
    step: pick([1, 2, 20, undefined]),
    callId: boundary === 'tool' ? `call-${Math.floor(random() * 1e6)}` : undefined,
    toolName: boundary === 'tool' ? pick([exclusive, parallel, 'mcp__server__tool']) : undefined,
    model: boundary === 'request' ? 'scripted-1' : undefined,
    purpose: boundary === 'request' ? pick([undefined, undefined, 'session-title', 'compaction']) : undefined,
    pendingEvents: pick([0, 1, 7, 400]),
  })
}
