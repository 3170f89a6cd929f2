/**
 * The one place where a barrier decides: decide, flush, settle, announce.
 *
 * A hook opens a barrier, awaits `barrier.ready` where there is one, and settles it in the same tick in which it
 * goes on, so that what was recorded is what happened.
 */
import type { Session } from '@deepseek-ai/dsh-session'
import { siblingsOf, ToolBatch, type IsParallel } from './batch.ts'
import type {
  BarrierSubject,
  Boundary,
  FlushOutcome,
  OpenBarrier,
  Outcome,
  RecoveredCall,
  SettledBarrier,
} from './barrier.ts'
import { Observers, type CheckpointObserver, type Checkpoints, type CheckpointState } from './checkpoints.ts'
import type { ResolvedConfig } from './config.ts'
import { CheckpointError, errorTypeOf } from './errors.ts'
import { Ledger, type Flush, type SendFlush } from './ledger.ts'
import type { LimitedLog } from './log.ts'
import { ERROR_TIMEOUT, ERROR_UNCONFIRMED, OTHER } from './semconv.ts'
import {
  DEFAULT_GROUP_DELAY_MS,
  defaultStrategy,
  FLUSH,
  readDecision,
  type CheckpointStrategy,
  type Decision,
} from './strategy.ts'
import { idsOf, Telemetry, type ParentContext, type Span } from './telemetry.ts'

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

/** What the policy captured from the host, once. */
export interface Host {
  readonly flush: SendFlush
  readonly isLive: (session: Session) => boolean
  readonly isParallel: IsParallel
  /** Tool calls the loop runs at once. */
  readonly maxParallel: () => number
  /** Called at the first `group` decision: from then on calls that never reach a barrier matter. */
  readonly watchToolPolicy: () => void
}

/** An event outside a turn is left to write-behind this long before it is flushed. */
const IDLE_MS = 1_000
/** A failed write of an idle session is tried again after twice the time of the last try, at most after this. */
const MAX_RETRY_MS = 60_000

/** All barriers of one mounted policy. */
export class Checkpoint {
  /** What `ctx.checkpoints` is. */
  readonly service: Checkpoints
  readonly telemetry: Telemetry
  readonly #host: Host
  readonly #config: ResolvedConfig
  readonly #log: LimitedLog
  readonly #observers: Observers
  readonly #open = new Set<LiveBarrier>()
  readonly #ledgers = new Map<Session, Ledger>()
  #strategy: CheckpointStrategy = defaultStrategy
  #nextId = 1
  #unloaded = false

  constructor(host: Host, config: ResolvedConfig, log: LimitedLog) {
    this.#host = host
    this.#config = config
    this.#log = log
    this.#observers = new Observers((observer, error) => {
      log.warn('observer', () => `observer ${observer.name || '(anonymous)'} failed: ${String(error)}`)
    })
    this.service = Object.freeze({
      observe: (observer: CheckpointObserver) => this.#observers.add(observer),
      open: () => this.#openBarriers(),
      state: () => this.#state(),
      durationBucketsSeconds: Object.freeze([...config.durationBucketsSeconds]),
      allowUnguarded: config.allowUnguarded,
    })
    this.telemetry = new Telemetry(this.service, log)
  }

  get unloaded(): boolean {
    return this.#unloaded
  }

  /** The books of a live session, made at first sight. */
  ledger(session: Session): Ledger {
    let ledger = this.#ledgers.get(session)
    if (ledger === undefined) {
      ledger = new Ledger(session)
      // A late call of a session that has left the store gets books nobody keeps.
      if (this.#host.isLive(session)) this.#ledgers.set(session, ledger)
    }
    return ledger
  }

  /** Follow a strategy, or the default again. Open barriers finish as they were decided. */
  follow(strategy: CheckpointStrategy | undefined): void {
    // Its name is read once: a strategy is known under one.
    this.#strategy =
      strategy === undefined ? defaultStrategy : { name: strategy.name, decide: (barrier) => strategy.decide(barrier) }
    this.telemetry.strategyMounted(this.#strategy.name)
  }

  /**
   * Open a barrier and begin what its decision asks for, with no await in between.
   * @param signal - cancellation of the guarded thing; seen while a flush is pending.
   * @param parent - where the barrier belongs in the trace, captured at the host's hook.
   * @param imposed - a decision of the policy itself, for which no strategy is asked.
   */
  open(
    subject: BarrierSubject,
    ledger: Ledger,
    signal: AbortSignal | undefined,
    parent: ParentContext,
    imposed?: Decision,
  ): LiveBarrier {
    const barrier = new LiveBarrier(this.#nextId++, subject, ledger, signal, parent)
    this.#open.add(barrier)
    this.telemetry.opened(barrier)
    if (this.#unloaded || signal?.aborted === true) {
      barrier.strategy = this.#strategy.name
      barrier.decision = MOOT
      barrier.wake(this.#unloaded ? 'unloaded' : 'aborted')
      return barrier
    }
    const decision = imposed ?? this.#decide(barrier)
    barrier.decision = decision
    switch (decision.kind) {
      case 'skip':
        break
      case 'start':
        this.#flush([barrier])
        break
      case 'flush':
        barrier.hold()
        this.#limit(barrier, decision.timeoutMs)
        if (barrier.wokenBy !== undefined) break
        if (decision.group === true && subject.boundary === 'tool') this.#join(barrier, decision.delayMs)
        else if (decision.group === true || decision.delayMs === undefined || decision.delayMs === 0)
          this.#flush([barrier])
        else barrier.after(decision.delayMs, () => this.#flush([barrier]))
        break
    }
    return barrier
  }

  /**
   * Say what became of the barrier, now that its wait is over; call it in the tick that goes on.
   * @returns whether to go on; `false` means aborted.
   * @throws the host's rejection as it came, or a {@link CheckpointError} of ours.
   */
  settle(barrier: LiveBarrier): boolean {
    barrier.releasedAt = performance.now()
    switch (barrier.wokenBy) {
      case 'unloaded':
        return this.#reject(barrier, OTHER, unloadedError(barrier.subject.boundary))
      case 'aborted':
        this.#close(barrier, 'aborted')
        return false
      case 'timeout':
        this.#close(barrier, 'timeout', ERROR_TIMEOUT)
        throw new CheckpointError(
          'CHECKPOINT_TIMEOUT',
          `the session log was not durable within ${Math.round(barrier.waitedMs)} ms (checkpoint ${barrier.subject.boundary})`,
        )
      case 'flush':
        if (barrier.flush?.outcome === 'rejected') {
          return this.#reject(barrier, errorTypeOf(barrier.flush.error), barrier.flush.error)
        }
        if (barrier.unconfirmed && this.#config.requireConfirmed) {
          return this.#reject(barrier, ERROR_UNCONFIRMED, unconfirmedError(barrier.subject.boundary))
        }
        if (barrier.signal?.aborted === true) {
          this.#close(barrier, 'aborted')
          return false
        }
        this.#close(barrier, 'dispatched')
        return true
      case undefined:
        // Nothing to wait for: a skip ends here, a write that was started keeps its barrier open until it ends.
        if (barrier.flush === undefined) this.#close(barrier, 'dispatched')
        else barrier.flush.whenEnded(() => this.#closeStarted(barrier))
        return true
    }
  }

  /**
   * A turn ended: start its last write and leave it to itself.
   * @param imposed - the policy's own decision for a session that stays idle.
   */
  turnEnded(ledger: Ledger, imposed?: Decision): void {
    if (!this.#config.turnBoundary || this.#unloaded || !this.#host.isLive(ledger.session)) return
    const { session } = ledger
    const barrier = this.open(subjectOf('turn', ledger), ledger, undefined, this.telemetry.parent(ledger), imposed)
    this.settle(barrier)
    barrier.flush?.whenEnded(() => {
      // What this flush itself made others append is not flushed again, or two plugins could keep a disk busy for ever.
      ledger.idleSeq = session.seq
      ledger.retryAt = performance.now() + Math.min(MAX_RETRY_MS, IDLE_MS * 2 ** ledger.consecutiveFailures)
    })
  }

  /** A call of the session will not reach a barrier soon: siblings must not wait for it, nor for those `blocking` holds up. */
  strike(ledger: Ledger, callId: string, blocking = false): void {
    ledger.batch?.strike(callId, blocking)
  }

  /** A resumed session brought calls that recovery answered. */
  recovered(ledger: Ledger, calls: readonly RecoveredCall[]): void {
    for (const call of calls) {
      // Of several verdicts the one that asks for attention.
      if (ledger.recovery !== 'unknown') ledger.recovery = call.recovery
      this.telemetry.recovered(call)
      this.#observers.announce(call)
    }
  }

  /** A session left the store: nothing of it can be flushed any more. */
  sessionEnded(session: Session): void {
    const ledger = this.#ledgers.get(session)
    if (ledger === undefined) return
    this.#ledgers.delete(session)
    this.telemetry.turnEnded(ledger)
  }

  /** Housekeeping, once a second: overdue barriers are named, idle sessions written, a new SDK found. */
  tick(): void {
    this.telemetry.refresh()
    const now = performance.now()
    for (const barrier of this.#open) {
      if (barrier.overdueSaid || now - barrier.openedAt < this.#config.overdueMs) continue
      barrier.overdueSaid = true
      this.#log.warn(
        'overdue',
        () => `${describe(barrier)} is open for ${((now - barrier.openedAt) / 1_000).toFixed(1)} s`,
      )
    }
    for (const ledger of this.#ledgers.values()) {
      if (isIdle(ledger) && now >= dueAt(ledger)) this.turnEnded(ledger, START)
    }
  }

  /**
   * Reject what waits, let go of what was started, close every span.
   * @param appEnds - whether the application ends, not the policy alone.
   */
  unload(appEnds: boolean): void {
    this.#unloaded = true
    for (const barrier of this.#open) {
      if (barrier.ready !== undefined) barrier.wake('unloaded')
      else if (barrier.releasedAt !== undefined) this.#close(barrier, 'dispatched')
    }
    for (const ledger of this.#ledgers.values()) this.telemetry.turnEnded(ledger)
    this.telemetry.unload(appEnds)
  }

  #decide(barrier: LiveBarrier): Decision {
    const strategy = this.#strategy
    barrier.strategy = strategy.name
    const { subject } = barrier
    let decision: Decision = FLUSH
    if (strategy !== defaultStrategy) {
      try {
        const answer = readDecision(strategy.decide(Object.freeze(subject)))
        if (answer === undefined) barrier.overruled = 'invalid'
        else decision = answer
      } catch (error) {
        barrier.overruled = 'threw'
        this.#log.warn('strategy threw', () => `strategy "${strategy.name}" threw, flushing instead: ${String(error)}`)
      }
      if (barrier.overruled === 'invalid') {
        this.#log.warn('strategy invalid', () => `strategy "${strategy.name}" answered no decision, flushing instead`)
      }
    }
    if (subject.guarded && decision.kind !== 'flush' && subject.pendingEvents > 0 && !this.#config.allowUnguarded) {
      const asked = decision.kind
      this.#log.warn(
        'strategy guarded',
        () =>
          `strategy "${strategy.name}" asked to ${asked} at ${subject.boundary}: flushing, as allowUnguarded is not set`,
      )
      barrier.overruled = 'guarded'
      decision = FLUSH
    }
    // The agent never waits at the end of a turn, whoever decides.
    if (subject.boundary === 'turn' && decision.kind === 'flush') decision = START
    return decision
  }

  /** @param anew - whether the barriers were part of a flush before. */
  #flush(barriers: readonly LiveBarrier[], anew = false): void {
    const [first] = barriers
    if (first === undefined) return
    const { ledger } = first
    const early = first.ready === undefined
    const flush = ledger.flush(this.#host.flush, early)
    flush.holders = barriers.length
    for (const barrier of barriers) barrier.flush = flush
    if (early) return
    flush.whenEnded(() => {
      // The host lets a flush join the write that is under way. Of one that was started early a failure is only recorded.
      if (!anew && flush.outcome === 'rejected' && flush.error === ledger.earlyError) {
        this.#flush(
          barriers.filter(({ wokenBy }) => wokenBy === undefined),
          true,
        )
      } else {
        for (const barrier of barriers) barrier.wake('flush')
      }
    })
  }

  #limit(barrier: LiveBarrier, decidedMs: number | undefined): void {
    const timeoutMs = Math.min(decidedMs ?? Infinity, this.#config.timeoutMs ?? Infinity)
    if (timeoutMs !== Infinity) barrier.after(timeoutMs, () => barrier.wake('timeout'))
  }

  #join(barrier: LiveBarrier, delayMs = DEFAULT_GROUP_DELAY_MS): void {
    const { ledger } = barrier
    const callId = barrier.subject.callId ?? ''
    try {
      this.#host.watchToolPolicy()
      if (ledger.batch?.covers(callId) !== true) {
        const callIds = siblingsOf(ledger.message, callId, ledger.agent, this.#host.isParallel)
        // A call alone has nobody to wait for, and others may be gathering.
        if (callIds.length === 1) return this.#flush([barrier])
        ledger.batch = new ToolBatch(callIds, callId, this.#host.maxParallel(), (barriers) => this.#flush(barriers))
      }
      ledger.batch.join(barrier, callId, delayMs)
    } catch (error) {
      this.#log.warn('group', () => `cannot group the calls of a step, flushing each: ${String(error)}`)
      this.#flush([barrier])
    }
  }

  #reject(barrier: LiveBarrier, errorType: string, error: unknown): never {
    this.#close(barrier, 'rejected', errorType)
    throw error
  }

  #closeStarted(barrier: LiveBarrier): void {
    const { flush } = barrier
    if (flush?.outcome === 'rejected') this.#close(barrier, 'dispatched', errorTypeOf(flush.error))
    else this.#close(barrier, 'dispatched')
  }

  /** The end of every barrier: out of the list, into telemetry, to the observers. */
  #close(barrier: LiveBarrier, outcome: Outcome, errorType?: string): void {
    if (!this.#open.delete(barrier)) return
    barrier.outcome = outcome
    barrier.errorType = errorType
    barrier.tells = barrier.flush?.tell() ?? false
    barrier.flushMs = barrier.flush?.ageMs
    barrier.ledger.batch?.leave(barrier)
    const unguarded = barrier.subject.guarded && outcome === 'dispatched' && !isCovered(barrier)
    if (errorType !== undefined) {
      this.#log.warn(`failed ${barrier.subject.boundary}`, () => `${describe(barrier)} failed: ${errorType}`)
    }
    if (barrier.unconfirmed) {
      this.#log.warn(
        'unconfirmed',
        () => 'a flush resolved but no persistence backend took part: nothing was made durable',
      )
    }
    this.telemetry.settled(barrier, unguarded)
    if (!this.#observers.empty) this.#observers.announce(recordOf(barrier, outcome, unguarded))
  }

  #openBarriers(): readonly OpenBarrier[] {
    const now = performance.now()
    return [...this.#open].map((barrier) =>
      Object.freeze({
        ...barrier.subject,
        id: barrier.id,
        strategy: barrier.strategy,
        ageMs: now - barrier.openedAt,
        waiting: barrier.releasedAt === undefined,
      }),
    )
  }

  #state(): CheckpointState {
    const now = performance.now()
    const active: Record<Boundary, number> = { step: 0, request: 0, tool: 0, turn: 0 }
    let oldestAgeMs = 0
    for (const barrier of this.#open) {
      active[barrier.subject.boundary] += 1
      oldestAgeMs = Math.max(oldestAgeMs, now - barrier.openedAt)
    }
    let unflushedOldestAgeMs = 0
    let consecutiveFailures = 0
    for (const ledger of this.#unloaded ? [] : this.#ledgers.values()) {
      if (ledger.unflushedSince !== undefined)
        unflushedOldestAgeMs = Math.max(unflushedOldestAgeMs, now - ledger.unflushedSince)
      consecutiveFailures = Math.max(consecutiveFailures, ledger.consecutiveFailures)
    }
    return { active, oldestAgeMs, unflushedOldestAgeMs, consecutiveFailures, strategy: this.#strategy.name }
  }
}

/** Whether a session between turns has something to write that nobody is writing. */
function isIdle(ledger: Ledger): boolean {
  return ledger.turnOpen === false && !ledger.flushing && ledger.unflushedSince !== undefined
}

/** When an idle session is written, monotonic clock: a failed write comes again, what was tried in vain does not. */
function dueAt(ledger: Ledger): number {
  if (ledger.consecutiveFailures > 0) return ledger.retryAt
  return ledger.idleSeq === ledger.session.seq ? Infinity : (ledger.unflushedSince ?? Infinity) + IDLE_MS
}

const START: Decision = Object.freeze({ kind: 'start' })
/** There was nothing left to decide. */
const MOOT: Decision = Object.freeze({ kind: 'skip', reason: 'ended before it began' })

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
function isCovered(barrier: LiveBarrier): boolean {
  switch (barrier.decision.kind) {
    case 'flush':
      return barrier.flush?.outcome === 'durable'
    case 'start':
    case 'skip':
      return barrier.subject.pendingEvents === 0
  }
}

function recordOf(barrier: LiveBarrier, outcome: Outcome, unguarded: boolean): SettledBarrier {
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

function describe(barrier: LiveBarrier): string {
  const { boundary, sessionId, turn, step, toolName } = barrier.subject
  const what = toolName === undefined ? '' : ` of tool ${toolName}`
  return `checkpoint ${boundary}${what} (session ${sessionId}, turn ${turn ?? '?'}, step ${step ?? '?'})`
}

/** A request or call met the policy after it was unloaded, or while it was. */
function unloadedError(boundary: Boundary): CheckpointError {
  return new CheckpointError(
    'CHECKPOINT_UNLOADED',
    `the checkpoint policy (dsh-checkpoint-otel) was unloaded before this ${boundary} was durable; it was not run`,
  )
}

function unconfirmedError(boundary: Boundary): CheckpointError {
  return new CheckpointError(
    'CHECKPOINT_UNCONFIRMED',
    `no persistence backend confirmed that the session log is durable (checkpoint ${boundary})`,
  )
}
