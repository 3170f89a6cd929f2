/**
 * The one place where a barrier decides: decide, flush, settle, announce. It is long because all branching is here.
 *
 * A hook opens a barrier, awaits `barrier.ready` where there is one, and settles it in the same tick in which it
 * goes on, so that what was recorded is what happened.
 */
import type { Session } from '@deepseek-ai/dsh-session'
import { siblingsOf, ToolBatch } from './batch.ts'
import type { BarrierSubject, Boundary, OpenBarrier, Outcome, RecoveredCall } from './barrier.ts'
import { Observers, type CheckpointObserver, type Checkpoints, type CheckpointState } from './checkpoints.ts'
import type { ResolvedConfig } from './config.ts'
import { errorTypeOf, timeoutError, unconfirmedError, unloadedError } from './errors.ts'
import type { Host } from './host.ts'
import { Ledger } from './ledger.ts'
import { describe, isCovered, LiveBarrier, openRecordOf, recordOf, subjectOf } from './live-barrier.ts'
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
import { Telemetry, type ParentContext } from './telemetry.ts'

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
   * @throws the host's rejection as it came, or a `CheckpointError` of ours.
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
        throw timeoutError(barrier.subject.boundary, barrier.waitedMs)
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
   * Start a write at the `turn` boundary and leave it to itself: a turn ended, or a session stays idle with something to write.
   * @param imposed - the policy's own decision for a session that stays idle.
   */
  startWrite(ledger: Ledger, imposed?: Decision): void {
    if (!this.#config.turnBoundary || this.#unloaded || !this.#host.isLive(ledger.session)) return
    const barrier = this.open(subjectOf('turn', ledger), ledger, undefined, this.telemetry.parent(ledger), imposed)
    this.settle(barrier)
    barrier.flush?.whenEnded(() => ledger.wroteIdle())
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
      if (ledger.isDue(now)) this.startWrite(ledger, START)
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
      this.#host.watchToolPolicy((session, id, blocking) => this.ledger(session).batch?.strike(id, blocking))
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
    return Array.from(this.#open, (barrier) => openRecordOf(barrier, now))
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

const START: Decision = Object.freeze({ kind: 'start' })
/** There was nothing left to decide. */
const MOOT: Decision = Object.freeze({ kind: 'skip', reason: 'ended before it began' })
