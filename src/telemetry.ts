/**
 * The policy's only importer of `@opentelemetry/api`. Nothing in here throws into the host.
 *
 * Meters are not proxied by the API: an instrument made before an SDK registers stays a no-op for ever, so instruments
 * and tracer are made again whenever the global provider is another one.
 */
import { context, metrics, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api'
import type { Attributes, Context, MeterProvider, Span, Tracer, TracerProvider } from '@opentelemetry/api'
import type { RecoveredCall } from './barrier.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Ledger } from './ledger.ts'
import type { LiveBarrier } from './live-barrier.ts'
import type { LimitedLog } from './log.ts'
import * as sc from './semconv.ts'
import { instrumentsOf, policyMounted, policyUnloaded, type Instruments } from './telemetry/instruments.ts'
import { registry } from './telemetry/registry.ts'

/** Where a barrier belongs in the trace. */
export type ParentContext = Context

/** The span of an open turn, and the context it was opened in. */
export interface TurnTrace {
  readonly span: Span
  /** Context that was active at `turn/start`. */
  readonly outer: Context
  readonly outerSpan: Span | undefined
  /** `outer` with the turn's span. */
  readonly inner: Context
}

export type { Span }

/** Ids of a span for records and exemplars; nothing where no SDK makes spans, or where this one is sampled out. */
export function idsOf(span: Span): { readonly traceId: string; readonly spanId: string } | undefined {
  try {
    const ids = span.spanContext()
    return (ids.traceFlags & TraceFlags.SAMPLED) !== 0 && trace.isSpanContextValid(ids) ? ids : undefined
  } catch {
    // A broken span was reported when it was made; a record without ids is still a record.
    return undefined
  }
}

/** Spans and metrics of one mounted policy. */
export class Telemetry {
  readonly #checkpoints: Checkpoints
  readonly #log: LimitedLog
  readonly #strategies = new Set<string>()
  #otherCopySaid = false
  #tracerProvider: TracerProvider | undefined
  #tracer: Tracer | undefined
  #meterProvider: MeterProvider | undefined
  #instruments: Instruments | undefined

  constructor(checkpoints: Checkpoints, log: LimitedLog) {
    this.#checkpoints = checkpoints
    this.#log = log
  }

  /** Count the policy among those mounted, until {@link unload}. */
  mount(): void {
    policyMounted(this.#checkpoints)
  }

  /** Make tracer and instruments again if an SDK was registered or replaced. */
  refresh(): void {
    this.#contain(() => {
      this.#follow()
      if (this.#otherCopySaid) return
      const other = otherCopy()
      if (other === undefined) return
      this.#otherCopySaid = true
      this.#log.warn(
        'api',
        () =>
          `an OpenTelemetry SDK is registered through @opentelemetry/api ${other}, which this package's own copy cannot ` +
          'see: barriers are guarded, but no span or metric of theirs is exported; install one version of the API',
      )
    })
  }

  /** Where a barrier of this session belongs: the host's own active span, else the turn's. */
  parent(ledger: Ledger): ParentContext {
    try {
      const active = context.active()
      const turn = ledger.turnTrace
      if (turn === undefined) return active
      if (active === turn.outer) return turn.inner
      const span = trace.getSpan(active)
      return span !== undefined && span !== turn.outerSpan ? active : trace.setSpan(active, turn.span)
    } catch (error) {
      this.#failed(error)
      return FALLBACK_CONTEXT
    }
  }

  /** Run what a barrier released with the barrier's parent active; exactly once, whatever the context manager does. */
  run<R>(parent: ParentContext, call: () => R): R {
    if (this.#isActive(parent)) return call()
    let called = false
    let threw = false
    let value: unknown
    const once = (): void => {
      if (called) return
      called = true
      try {
        value = call()
      } catch (error) {
        threw = true
        value = error
      }
    }
    try {
      context.with(parent, once)
    } catch (error) {
      this.#failed(error)
    }
    once()
    if (threw) throw value
    return value as R
  }

  turnStarted(ledger: Ledger): void {
    this.turnEnded(ledger)
    this.#contain(() => {
      this.#follow()
      const outer = context.active()
      const attributes: Attributes = {
        [sc.ATTR_CONVERSATION_ID]: ledger.session.id,
        [sc.ATTR_SESSION_ID]: ledger.session.id,
        [sc.ATTR_TURN]: ledger.turn,
        [sc.ATTR_RECOVERY]: ledger.recovery,
      }
      ledger.recovery = undefined
      const span = this.#tracer?.startSpan(sc.SPAN_TURN, { attributes }, outer)
      // Without an SDK there is nothing to be a child of, and the active context is left as it is.
      if (span === undefined || !trace.isSpanContextValid(span.spanContext())) return
      ledger.turnTrace = { span, outer, outerSpan: trace.getSpan(outer), inner: trace.setSpan(outer, span) }
    })
  }

  turnEnded(ledger: Ledger): void {
    const turn = ledger.turnTrace
    if (turn === undefined) return
    ledger.turnTrace = undefined
    this.#contain(() => turn.span.end())
  }

  opened(barrier: LiveBarrier): void {
    try {
      this.#followTracer()
      const { subject, parent } = barrier
      const attributes: Attributes = {
        [sc.ATTR_BOUNDARY]: subject.boundary,
        [sc.ATTR_CONVERSATION_ID]: subject.sessionId,
        [sc.ATTR_SESSION_ID]: subject.sessionId,
        [sc.ATTR_TURN]: subject.turn,
        [sc.ATTR_STEP]: subject.step,
      }
      // Absent rather than undefined: an SDK cleans every key it is given.
      if (subject.callId !== undefined) {
        // Both are the model's own words.
        attributes[sc.ATTR_TOOL_CALL_ID] = clip(subject.callId)
        attributes[sc.ATTR_TOOL_NAME] = clip(subject.toolName)
      }
      if (subject.model !== undefined) attributes[sc.ATTR_REQUEST_MODEL] = clip(subject.model)
      const scope = parent === FALLBACK_CONTEXT ? undefined : parent
      barrier.span = this.#tracer?.startSpan(sc.SPAN_BARRIER[subject.boundary], { attributes }, scope)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** End the barrier's span and count it; once per barrier, after its outcome is known. */
  settled(barrier: LiveBarrier, unguarded: boolean): void {
    try {
      if (barrier.span !== undefined) endSpan(barrier.span, barrier)
    } catch (error) {
      this.#failed(error)
    }
    try {
      this.#followMeter()
      if (this.#instruments !== undefined) this.#count(this.#instruments, barrier, unguarded)
    } catch (error) {
      this.#failed(error)
    }
  }

  recovered(call: RecoveredCall): void {
    this.#contain(() => {
      this.#follow()
      this.#instruments?.recovered.add(1, { [sc.ATTR_RECOVERY]: call.recovery })
    })
  }

  /** Make the counters of a strategy exist at zero before it decides anything. */
  strategyMounted(name: string): void {
    this.#contain(() => {
      this.#follow()
      this.#strategyName(name)
    })
  }

  /** @param appEnds - whether the application ends, not the policy alone. */
  unload(appEnds: boolean): void {
    policyUnloaded(this.#checkpoints, appEnds)
  }

  #count(instruments: Instruments, barrier: LiveBarrier, unguarded: boolean): void {
    const { flush, flushMs = 0, errorType, outcome } = barrier
    const { boundary } = barrier.subject
    const strategy = this.#strategyName(barrier.strategy)
    instruments.barrierDuration.record(barrier.waitedMs / 1_000, {
      [sc.ATTR_BOUNDARY]: boundary,
      [sc.ATTR_OUTCOME]: outcome,
      [sc.ATTR_STRATEGY]: strategy,
    })
    if (flush !== undefined && barrier.tells) {
      instruments.flushDuration.record(flushMs / 1_000, {
        [sc.ATTR_BOUNDARY]: boundary,
        [sc.ATTR_FLUSH_OUTCOME]: barrier.flushOutcome,
      })
      instruments.flushEvents.record(flush.events, { [sc.ATTR_BOUNDARY]: boundary })
    }
    if (errorType !== undefined) {
      instruments.rejections.add(1, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_ERROR_TYPE]: errorType })
    }
    if (boundary === 'tool' && outcome === 'aborted') instruments.aborted.add(1)
    if (unguarded) instruments.unguarded.add(1, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_STRATEGY]: strategy })
    if (barrier.overruled === 'threw' || barrier.overruled === 'invalid') {
      instruments.strategyFaults.add(1, { [sc.ATTR_BOUNDARY]: boundary, [sc.ATTR_STRATEGY]: strategy })
    }
  }

  #strategyName(name: string): string {
    if (this.#strategies.has(name)) return name
    if (this.#strategies.size >= sc.MAX_STRATEGY_NAMES) return sc.OTHER
    this.#strategies.add(name)
    this.#instruments?.zeroStrategy(name)
    return name
  }

  #follow(): void {
    this.#followTracer()
    this.#followMeter()
  }

  #followTracer(): void {
    const tracerProvider = trace.getTracerProvider()
    if (tracerProvider !== this.#tracerProvider) {
      this.#tracer = tracerProvider.getTracer(sc.SCOPE_NAME, sc.SCOPE_VERSION)
      this.#tracerProvider = tracerProvider
    }
  }

  #followMeter(): void {
    const meterProvider = metrics.getMeterProvider()
    if (meterProvider !== this.#meterProvider) {
      this.#meterProvider = meterProvider
      this.#instruments = instrumentsOf(meterProvider, this.#checkpoints.durationBucketsSeconds)
      for (const name of this.#strategies) this.#instruments.zeroStrategy(name)
    }
  }

  /** Whether a call needs no context of its own; true where the API itself fails. */
  #isActive(parent: ParentContext): boolean {
    try {
      return parent === FALLBACK_CONTEXT || context.active() === parent
    } catch (error) {
      this.#failed(error)
      return true
    }
  }

  #contain(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#log.warn('telemetry', () => `telemetry failed, barriers are not affected: ${String(error)}`)
  }
}

/** Version of the API copy that registered an SDK which ours cannot see. */
function otherCopy(): string | undefined {
  const registered = registry()
  if (registered === undefined) return undefined
  const seen =
    (registered.metrics === undefined || registered.metrics === metrics.getMeterProvider()) &&
    (registered.trace === undefined || registered.trace === trace.getTracerProvider())
  return seen ? undefined : (registered.version ?? 'of another version')
}

/** Longest text on a span, in characters. */
const MAX_TEXT = 256

function clip(text: string | undefined): string | undefined {
  return text === undefined || text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT)
}

function endSpan(span: Span, barrier: LiveBarrier): void {
  if (span.isRecording()) {
    span.setAttributes({
      [sc.ATTR_OUTCOME]: barrier.outcome,
      [sc.ATTR_FLUSH_OUTCOME]: barrier.flushOutcome,
      [sc.ATTR_STRATEGY]: barrier.strategy,
      [sc.ATTR_DECISION]: barrier.decision.kind,
      [sc.ATTR_EVENTS]: barrier.tells ? (barrier.flush?.events ?? 0) : 0,
    })
    if (barrier.errorType !== undefined) {
      span.setAttribute(sc.ATTR_ERROR_TYPE, barrier.errorType)
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
  }
  span.end()
}

/** Stands in where the API itself failed; never handed to a context manager. */
const FALLBACK_CONTEXT: Context = {
  getValue: () => undefined,
  setValue: () => FALLBACK_CONTEXT,
  deleteValue: () => FALLBACK_CONTEXT,
}
