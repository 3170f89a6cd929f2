/** One barrier between its opening and its close, and what is told of it afterwards. */
import type { BarrierSubject, Boundary, FlushOutcome, OpenBarrier, Outcome, SettledBarrier } from './barrier.ts'
import type { Flush, Ledger } from './ledger.ts'
import { defaultStrategy, FLUSH, type Decision } from './strategy.ts'
import { idsOf, type ParentContext, type Span } from './telemetry.ts'

/** What ended a wait first. */
type Wake = 'flush' | 'aborted' | 'timeout' | 'unloaded'

/** One barrier between its opening and its close. */
export class LiveBarrier {
  readonly id: number
  readonly subject: BarrierSubject
  readonly ledger: Ledger
  readonly signal: AbortSignal | undefined
  /** Context that the released work runs in. */
  readonly parent: ParentContext
  readonly openedAt = performance.now()
  /** Resolves when the wait is over; absent when there is nothing to wait for. Never rejects. */
  ready: Promise<void> | undefined
  span: Span | undefined
  strategy = defaultStrategy.name
  decision: Decision = FLUSH
  overruled: SettledBarrier['overruled']
  flush: Flush | undefined
  outcome: Outcome | undefined
  errorType: string | undefined
  /** When the agent went on, monotonic clock. */
  releasedAt: number | undefined
  /** Of the barriers that share a flush, the one whose record tells of it. */
  tells = false
  /** Age of the flush when the barrier settled: read once, so that every path measures the same of a flush that goes on. */
  flushMs: number | undefined
  wokenBy: Wake | undefined
  overdueSaid = false
  #resume: (() => void) | undefined
  #timers: ReturnType<typeof setTimeout>[] | undefined

  constructor(
    id: number,
    subject: BarrierSubject,
    ledger: Ledger,
    signal: AbortSignal | undefined,
    parent: ParentContext,
  ) {
    this.id = id
    this.subject = subject
    this.ledger = ledger
    this.signal = signal
    this.parent = parent
  }

  get unconfirmed(): boolean {
    return this.flush?.outcome === 'unconfirmed'
  }

  get flushOutcome(): FlushOutcome {
    return this.flush === undefined ? 'none' : (this.flush.outcome ?? 'pending')
  }

  /** Milliseconds the agent waited, so far or in all. */
  get waitedMs(): number {
    return (this.releasedAt ?? performance.now()) - this.openedAt
  }

  /** Make the host wait until {@link wake}; the wait ends early on abort. */
  hold(): void {
    this.ready = new Promise((resolve) => {
      this.#resume = resolve
    })
    // An abort that came while the strategy decided fires no listener any more.
    if (this.signal?.aborted === true) this.wake('aborted')
    else this.signal?.addEventListener('abort', this)
  }

  /** Abort of the guarded thing: the listener is the barrier itself, which saves a closure on each. */
  handleEvent(): void {
    this.wake('aborted')
  }

  after(delayMs: number, action: () => void): void {
    this.#timers = [...(this.#timers ?? []), setTimeout(action, delayMs)]
  }

  /** End the wait; only the first reason counts. */
  wake(reason: Wake): void {
    if (this.wokenBy !== undefined) return
    this.wokenBy = reason
    this.signal?.removeEventListener('abort', this)
    for (const timer of this.#timers ?? []) clearTimeout(timer)
    this.#resume?.()
  }

  /** The consumer left before the barrier was settled: whatever woke it, nothing is dispatched. */
  cancel(): void {
    this.wake('aborted')
    this.wokenBy = 'aborted'
  }
}

/** What only one boundary knows of its barrier. */
interface Guarded {
  readonly callId?: string
  readonly toolName?: string
  readonly model?: string
  readonly purpose?: string
}

/** Describe a barrier that is about to open. One literal, because it is made for every barrier. */
export function subjectOf(boundary: Boundary, ledger: Ledger, guarded: Guarded = NOTHING): BarrierSubject {
  return {
    boundary,
    guarded: boundary === 'request' || boundary === 'tool',
    sessionId: ledger.sessionId,
    agentId: ledger.agentId,
    agentPreset: ledger.agentPreset,
    delegationDepth: ledger.delegationDepth,
    turn: ledger.turn,
    step: ledger.step,
    callId: guarded.callId,
    toolName: guarded.toolName,
    model: guarded.model,
    purpose: guarded.purpose,
    pendingEvents: ledger.pendingEvents,
  }
}

const NOTHING: Guarded = Object.freeze({})

/** Whether the log was known to be durable when the barrier released its thing. */
export function isCovered(barrier: LiveBarrier): boolean {
  switch (barrier.decision.kind) {
    case 'flush':
      return barrier.flush?.outcome === 'durable'
    case 'start':
    case 'skip':
      return barrier.subject.pendingEvents === 0
  }
}

/** What observers get to see of a settled barrier. */
export function recordOf(barrier: LiveBarrier, outcome: Outcome, unguarded: boolean): SettledBarrier {
  const { subject, flush, decision, span } = barrier
  const ids = span === undefined ? undefined : idsOf(span)
  // Written out, because a spread costs as much as all observers together.
  return {
    kind: 'barrier',
    id: barrier.id,
    openedAt: performance.timeOrigin + barrier.openedAt,
    boundary: subject.boundary,
    guarded: subject.guarded,
    sessionId: subject.sessionId,
    agentId: subject.agentId,
    agentPreset: subject.agentPreset,
    delegationDepth: subject.delegationDepth,
    turn: subject.turn,
    step: subject.step,
    callId: subject.callId,
    toolName: subject.toolName,
    model: subject.model,
    purpose: subject.purpose,
    pendingEvents: subject.pendingEvents,
    outcome,
    flushOutcome: barrier.flushOutcome,
    strategy: barrier.strategy,
    decision: decision.kind,
    reason: decision.kind === 'skip' ? decision.reason : undefined,
    overruled: barrier.overruled,
    unguarded,
    events: barrier.tells && flush !== undefined ? flush.events : 0,
    durationMs: barrier.waitedMs,
    flushMs: barrier.flushMs,
    sharedFlush: flush !== undefined && !barrier.tells,
    errorType: barrier.errorType,
    traceId: ids?.traceId,
    spanId: ids?.spanId,
  }
}

/** What everyone gets to see of an open barrier. */
export function openRecordOf(barrier: LiveBarrier, now: number): OpenBarrier {
  return Object.freeze({
    ...barrier.subject,
    id: barrier.id,
    strategy: barrier.strategy,
    ageMs: now - barrier.openedAt,
    waiting: barrier.releasedAt === undefined,
  })
}

/** A barrier in words, for the log. */
export function describe(barrier: LiveBarrier): string {
  const { boundary, sessionId, turn, step, toolName } = barrier.subject
  const what = toolName === undefined ? '' : ` of tool ${toolName}`
  return `checkpoint ${boundary}${what} (session ${sessionId}, turn ${turn ?? '?'}, step ${step ?? '?'})`
}
