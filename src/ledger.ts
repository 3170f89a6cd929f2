/** What is durable of one session, and where its agent stands. */
import type { Session } from '@deepseek-ai/dsh-session'
import type { Recovery } from './barrier.ts'
import type { ToolBatch } from './batch.ts'
import type { TurnTrace } from './telemetry.ts'

/** The host's `sessions.flush`: resolves to `false` where no durability listener took part; older hosts resolve to nothing. */
export type SendFlush = (session: Session) => Promise<unknown>

/** One `sessions.flush(session)`; several barriers may share it. */
export class Flush {
  /** Events with a smaller `seq` are durable once this flush is. */
  readonly seq: number
  /** Events this flush was the first to ask for. */
  readonly events: number
  readonly startedAt = performance.now()
  endedAt: number | undefined
  outcome: 'durable' | 'rejected' | 'unconfirmed' | undefined
  /** The host's rejection, as it came. */
  error: unknown
  /** When the first event after this flush was appended. */
  firstAfterAt: number | undefined
  /** Barriers that share this flush and have not settled. */
  holders = 1
  #told = false
  readonly #waiters: (() => void)[] = []

  constructor(seq: number, events: number) {
    this.seq = seq
    this.events = events
  }

  /** Milliseconds since the flush began, up to its end. */
  get ageMs(): number {
    return (this.endedAt ?? performance.now()) - this.startedAt
  }

  /**
   * A barrier of this flush settles.
   * @returns whether its record is the one that tells of the flush: the first after the end, or the last to give up.
   */
  tell(): boolean {
    this.holders -= 1
    if (this.#told || (this.outcome === undefined && this.holders > 0)) return false
    this.#told = true
    return true
  }

  whenEnded(waiter: () => void): void {
    if (this.outcome === undefined) this.#waiters.push(waiter)
    else waiter()
  }

  end(outcome: 'durable' | 'rejected' | 'unconfirmed', error?: unknown): void {
    this.endedAt = performance.now()
    this.error = error
    this.outcome = outcome
    for (const waiter of this.#waiters) waiter()
    this.#waiters.length = 0
  }
}

/** An event outside a turn is left to write-behind this long before it is flushed. */
const IDLE_MS = 1_000
/** A failed write of an idle session is tried again after twice the time of the last try, at most after this. */
const MAX_RETRY_MS = 60_000

/** The books of one live session. */
export class Ledger {
  readonly session: Session
  readonly sessionId: string
  readonly agentPreset: string | undefined
  readonly delegationDepth: number
  agentId: string | undefined
  /** The agent of the last tool call. */
  agent: unknown
  turn: number | undefined
  step: number | undefined
  /** Whether a turn is open; unknown until the first turn event. */
  turnOpen: boolean | undefined
  turnTrace: TurnTrace | undefined
  /** The parallel tool calls being dispatched now, kept for `group` decisions. */
  batch: ToolBatch | undefined
  /** Content of the last assistant message of the open step. */
  message: readonly unknown[] = []
  /** Verdict of crash recovery over the session's calls, until its first turn has told of it. */
  recovery: Recovery | undefined
  consecutiveFailures = 0
  /** Rejection of the last write that was started and failed. */
  earlyError: unknown = NO_ERROR
  /** `seq` when a write that nobody waits for last ended: the same events are not tried twice. */
  #idleSeq = -1
  /** When a failed one is tried again, monotonic clock. */
  #retryAt = 0
  #durableSeq = 0
  /** The latest-begun flush that was good. */
  #lastGood: Flush | undefined
  readonly #seedSeq: number
  #claimedSeq: number
  #unflushedSince: number | undefined
  readonly #inFlight: Flush[] = []

  constructor(session: Session) {
    this.session = session
    const { id, agentPreset, delegationDepth = 0 } = session.header
    this.sessionId = id
    this.agentPreset = agentPreset
    this.delegationDepth = delegationDepth
    // A seed was stored by somebody else or will be by the first flush: it is not news to count.
    this.#seedSeq = session.seq
    this.#claimedSeq = session.seq
  }

  /** Events after the last good flush: an upper bound of what a crash could lose. */
  get pendingEvents(): number {
    return this.session.seq - this.#durableSeq
  }

  get flushing(): boolean {
    return this.#inFlight.length > 0
  }

  /** When the oldest event after the last good flush was appended, monotonic clock. */
  get unflushedSince(): number | undefined {
    return this.#unflushedSince
  }

  /** Whether the session stands between turns with something to write that nobody is writing. */
  isDue(now: number): boolean {
    if (this.turnOpen !== false || this.flushing || this.#unflushedSince === undefined) return false
    // A failed write comes again; what was tried in vain does not.
    if (this.consecutiveFailures > 0) return now >= this.#retryAt
    return this.#idleSeq !== this.session.seq && now >= this.#unflushedSince + IDLE_MS
  }

  /** A write that nobody waits for ended: what it made others append is not due, or two plugins could keep a disk busy. */
  wroteIdle(): void {
    this.#idleSeq = this.session.seq
    this.#retryAt = performance.now() + Math.min(MAX_RETRY_MS, IDLE_MS * 2 ** this.consecutiveFailures)
  }

  /** Note one appended event. */
  appended(): void {
    const now = performance.now()
    this.#unflushedSince ??= now
    for (const flush of this.#inFlight) flush.firstAfterAt ??= now
  }

  /**
   * Begin a flush now and keep the books on it. Never throws, never leaves a rejection unhandled.
   * @param early - whether nobody waits for it.
   */
  flush(send: SendFlush, early = false): Flush {
    const { seq } = this.session
    const flush = new Flush(seq, Math.max(0, seq - this.#claimedSeq))
    this.#claimedSeq = Math.max(this.#claimedSeq, seq)
    this.#inFlight.push(flush)
    promised(send, this.session).then(
      (confirmed) => this.#ended(flush, confirmed === false ? 'unconfirmed' : 'durable', undefined),
      (error: unknown) => {
        if (early) this.earlyError = error
        this.#ended(flush, 'rejected', error)
      },
    )
    return flush
  }

  #ended(flush: Flush, outcome: 'durable' | 'rejected' | 'unconfirmed', error: unknown): void {
    // Nearly always the only one; a splice would make an array for it.
    if (this.#inFlight[0] === flush) this.#inFlight.shift()
    else this.#inFlight.splice(this.#inFlight.indexOf(flush), 1)
    switch (outcome) {
      case 'durable':
        this.consecutiveFailures = 0
        if (this.#lastGood === undefined || flush.startedAt > this.#lastGood.startedAt) this.#lastGood = flush
        this.#claimedSeq = Math.max(this.#claimedSeq, flush.seq)
        if (flush.seq >= this.#durableSeq) {
          this.#durableSeq = flush.seq
          this.#unflushedSince = flush.firstAfterAt
        }
        break
      case 'rejected':
        // One that began later was good meanwhile: nothing is missing, and the disk is well.
        if (this.#lastGood !== undefined && flush.startedAt < this.#lastGood.startedAt) break
        this.consecutiveFailures += 1
        this.#claimedSeq = Math.max(this.#durableSeq, this.#seedSeq)
        break
      case 'unconfirmed':
        break
    }
    flush.end(outcome, error)
  }
}

/** A host that answers with no promise, or throws, has answered all the same. */
function promised(send: SendFlush, session: Session): Promise<unknown> {
  try {
    return Promise.resolve(send(session))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Equal to no rejection, whatever was thrown. */
const NO_ERROR = Symbol('no error')
