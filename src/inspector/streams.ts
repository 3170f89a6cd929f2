/**
 * Live updates to the open pages, as server-sent events. Without a page nothing runs here, not even a timer; a server that
 * closes its connections ends it.
 */
import type { ServerResponse } from 'node:http'
import type { Recorder } from './recorder.ts'
import type { InspectorState, InspectorUpdate } from './state.ts'

/** Pages that are served at a time. */
export const MAX_STREAMS = 8
/** Quiet time between two looks at what changed, and so between two messages. */
export const TICK_MS = 250
/** A sign of life at least this often; the server cuts off a connection that is quiet for 10 s. */
export const BEAT_MS = 5_000
/** A page that reads so slowly that this much waits for it is cut off; it comes back by itself. */
const MAX_QUEUED_BYTES = 2 * 1024 * 1024
/** Differences below this are rounding of the clock. */
const CLOCK_NOISE_MS = 25

/** The pages that are open now. */
export class Streams {
  readonly #recorder: Recorder
  readonly #failed: (error: unknown) => void
  readonly #open = new Set<ServerResponse>()
  #timer: NodeJS.Timeout | undefined
  #sentAt = 0
  #seen: Seen | undefined

  /** @param failed - told what a look at the policy threw; the pages get the next one. */
  constructor(recorder: Recorder, failed: (error: unknown) => void) {
    this.#recorder = recorder
    this.#failed = failed
  }

  /** Whether one more page may connect. */
  get full(): boolean {
    return this.#open.size >= MAX_STREAMS
  }

  /** Send everything, then what changes, until the page goes away. */
  add(response: ServerResponse): void {
    // The new page gets everything below; what the others have not seen yet must not reach it a second time.
    if (this.#open.size > 0) this.#tick()
    const everything = message('state', this.#recorder.state())
    this.#seen = look(this.#recorder)
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      // Proxies must not collect the messages.
      'X-Accel-Buffering': 'no',
    })
    this.#open.add(response)
    response.once('close', () => this.#remove(response))
    // What goes wrong on the way to a page closes it, and that is all there is to do.
    response.on('error', () => this.#remove(response))
    this.#send(response, everything)
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
  }

  #remove(response: ServerResponse): void {
    this.#open.delete(response)
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    try {
      const text = this.#news()
      if (text !== undefined) this.#broadcast(text)
    } catch (error) {
      // A timer that throws would end the host.
      this.#failed(error)
    }
  }

  #news(): string | undefined {
    const before = this.#seen
    const now = look(this.#recorder)
    if (before !== undefined && isSame(before, now)) {
      return performance.now() - this.#sentAt >= BEAT_MS ? message('beat', {}) : undefined
    }
    const { last, slowest, recoveredCalls } = this.#recorder
    const update: InspectorUpdate = {
      ...this.#recorder.summary(),
      last: last.newest(now.settled - (before?.settled ?? 0)),
      ...(now.slowest === before?.slowest ? {} : { slowest: slowest.entries }),
      ...(now.recovered === before?.recovered ? {} : { recoveredCalls: recoveredCalls.newest() }),
    }
    this.#seen = now
    return message('update', update)
  }

  #broadcast(text: string): void {
    this.#sentAt = performance.now()
    for (const response of this.#open) this.#send(response, text)
  }

  #send(response: ServerResponse, text: string): void {
    if (response.writableLength > MAX_QUEUED_BYTES) response.destroy()
    else if (!response.destroyed) response.write(text)
  }
}

/** What tells whether a page would look different. */
interface Seen {
  readonly settled: number
  readonly slowest: number
  readonly recovered: number
  readonly open: string
  readonly failures: number
  readonly strategy: string
  /** Since when there are unflushed events, monotonic clock; absent without any. */
  readonly unflushedSince: number | undefined
}

function look(recorder: Recorder): Seen {
  const { unflushedOldestAgeMs, consecutiveFailures, strategy } = recorder.gauges()
  return {
    settled: recorder.last.added,
    slowest: recorder.slowest.version,
    recovered: recorder.recoveredCalls.added,
    open: recorder
      .open()
      .map(({ id, waiting }) => `${id}${waiting ? 'w' : ''}`)
      .join(),
    failures: consecutiveFailures,
    strategy,
    unflushedSince: unflushedOldestAgeMs === 0 ? undefined : performance.now() - unflushedOldestAgeMs,
  }
}

/** Pages count ages themselves: time that passes is no change. */
function isSame({ unflushedSince: before, ...rest }: Seen, { unflushedSince: now, ...others }: Seen): boolean {
  const sameAge = before === undefined || now === undefined ? before === now : Math.abs(before - now) < CLOCK_NOISE_MS
  return sameAge && Object.entries(rest).every(([key, value]) => others[key as keyof typeof others] === value)
}

function message(event: 'state' | 'update' | 'beat', data: InspectorState | InspectorUpdate | object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
