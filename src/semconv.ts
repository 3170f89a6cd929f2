/**
 * Every name that leaves this package: spans, instruments, attributes, units and buckets.
 * Dashboards, alerts and tests import from here; a literal anywhere else is a defect.
 *
 * GenAI names are written out because they left the stable OpenTelemetry package.
 */

/** Instrumentation scope of all spans and metrics. */
export const SCOPE_NAME = 'dsh-checkpoint-otel'
/** Version of the instrumentation scope; a test keeps it equal to package.json. */
export const SCOPE_VERSION = '0.1.0'

/** Boundaries, in the order of a turn. */
export const BOUNDARIES = ['step', 'request', 'tool', 'turn'] as const
/** What became of the guarded thing. */
export const OUTCOMES = ['dispatched', 'rejected', 'aborted', 'timeout'] as const
/** What became of the write. */
export const FLUSH_OUTCOMES = ['durable', 'rejected', 'unconfirmed', 'pending', 'none'] as const
/** Verdicts of crash recovery over a call without a result. */
export const RECOVERIES = ['unknown', 'not_started'] as const
/** Boundaries that release something which leaves the machine. */
export const GUARDED_BOUNDARIES = ['request', 'tool'] as const

/** Span of one turn; its barriers are children unless the host traces itself. */
export const SPAN_TURN = 'agent turn'
/** Span names of barriers: `checkpoint request`, and so on. */
export const SPAN_BARRIER = {
  request: 'checkpoint request',
  tool: 'checkpoint tool',
  step: 'checkpoint step',
  turn: 'checkpoint turn',
} as const

export const ATTR_BOUNDARY = 'dsh.checkpoint.boundary'
export const ATTR_OUTCOME = 'dsh.checkpoint.outcome'
export const ATTR_FLUSH_OUTCOME = 'dsh.checkpoint.flush.outcome'
export const ATTR_STRATEGY = 'dsh.checkpoint.strategy'
export const ATTR_DECISION = 'dsh.checkpoint.decision'
/** Events newly covered by the barrier's flush. */
export const ATTR_EVENTS = 'dsh.checkpoint.events'
export const ATTR_TURN = 'dsh.checkpoint.turn'
export const ATTR_STEP = 'dsh.checkpoint.step'
export const ATTR_RECOVERY = 'dsh.checkpoint.recovery'
export const ATTR_CONVERSATION_ID = 'gen_ai.conversation.id'
export const ATTR_SESSION_ID = 'session.id'
export const ATTR_TOOL_NAME = 'gen_ai.tool.name'
export const ATTR_TOOL_CALL_ID = 'gen_ai.tool.call.id'
export const ATTR_REQUEST_MODEL = 'gen_ai.request.model'
export const ATTR_ERROR_TYPE = 'error.type'
/** Resource attribute, set by the SDK plugin. */
export const ATTR_SERVICE_NAME = 'service.name'

export const METRIC_BARRIER_DURATION = 'dsh.checkpoint.barrier.duration'
export const METRIC_FLUSH_DURATION = 'dsh.checkpoint.flush.duration'
export const METRIC_FLUSH_EVENTS = 'dsh.checkpoint.flush.events'
export const METRIC_REJECTIONS = 'dsh.checkpoint.rejections'
export const METRIC_ABORTED = 'dsh.checkpoint.aborted_before_dispatch'
export const METRIC_UNGUARDED = 'dsh.checkpoint.unguarded'
export const METRIC_STRATEGY_FAULTS = 'dsh.checkpoint.strategy_faults'
export const METRIC_RECOVERED = 'dsh.checkpoint.recovered_calls'
export const METRIC_ACTIVE = 'dsh.checkpoint.barrier.active'
export const METRIC_OLDEST_AGE = 'dsh.checkpoint.barrier.oldest_age'
export const METRIC_UNFLUSHED_AGE = 'dsh.checkpoint.unflushed.oldest_age'
export const METRIC_CONSECUTIVE_FAILURES = 'dsh.checkpoint.consecutive_failures'
export const METRIC_POLICY_ACTIVE = 'dsh.checkpoint.policy.active'

/** How one instrument is declared, for OpenTelemetry and prom-client alike. */
export interface InstrumentSpec {
  readonly kind: 'histogram' | 'counter' | 'upDownGauge' | 'gauge'
  /** UCUM unit or annotation. */
  readonly unit: string
  readonly description: string
  /** Attribute keys, closed. */
  readonly attributes: readonly string[]
  /** Family name in the Prometheus exposition, `_total` included for counters. */
  readonly prometheus: string
}

/** The telemetry contract as data, keyed by OpenTelemetry instrument name. */
export const INSTRUMENTS = {
  [METRIC_BARRIER_DURATION]: {
    kind: 'histogram',
    unit: 's',
    description: 'Time the agent waited at a checkpoint barrier.',
    attributes: [ATTR_BOUNDARY, ATTR_OUTCOME, ATTR_STRATEGY],
    prometheus: 'dsh_checkpoint_barrier_duration_seconds',
  },
  [METRIC_FLUSH_DURATION]: {
    kind: 'histogram',
    unit: 's',
    description: 'Duration of one session flush: every session/flush listener and the encoding, not only the disk.',
    attributes: [ATTR_BOUNDARY, ATTR_FLUSH_OUTCOME],
    prometheus: 'dsh_checkpoint_flush_duration_seconds',
  },
  [METRIC_FLUSH_EVENTS]: {
    kind: 'histogram',
    unit: '{event}',
    description: 'Session events newly covered by one flush.',
    attributes: [ATTR_BOUNDARY],
    prometheus: 'dsh_checkpoint_flush_events',
  },
  [METRIC_REJECTIONS]: {
    kind: 'counter',
    unit: '{rejection}',
    description: 'Barriers that were rejected or timed out, and writes started early that failed.',
    attributes: [ATTR_BOUNDARY, ATTR_ERROR_TYPE],
    prometheus: 'dsh_checkpoint_rejections_total',
  },
  [METRIC_ABORTED]: {
    kind: 'counter',
    unit: '{call}',
    description: 'Tool calls answered with ABORTED_BEFORE_DISPATCH by the checkpoint policy.',
    attributes: [],
    prometheus: 'dsh_checkpoint_aborted_before_dispatch_total',
  },
  [METRIC_UNGUARDED]: {
    kind: 'counter',
    unit: '{dispatch}',
    description: 'Requests and tool calls released without a confirmed durable log.',
    attributes: [ATTR_BOUNDARY, ATTR_STRATEGY],
    prometheus: 'dsh_checkpoint_unguarded_total',
  },
  [METRIC_STRATEGY_FAULTS]: {
    kind: 'counter',
    unit: '{fault}',
    description: 'Decisions that threw or made no sense and were replaced by a flush.',
    attributes: [ATTR_BOUNDARY, ATTR_STRATEGY],
    prometheus: 'dsh_checkpoint_strategy_faults_total',
  },
  [METRIC_RECOVERED]: {
    kind: 'counter',
    unit: '{call}',
    description: 'Tool calls without a result that crash recovery answered when a session was resumed.',
    attributes: [ATTR_RECOVERY],
    prometheus: 'dsh_checkpoint_recovered_calls_total',
  },
  [METRIC_ACTIVE]: {
    kind: 'upDownGauge',
    unit: '{barrier}',
    description: 'Barriers open now, writes started without waiting included.',
    attributes: [ATTR_BOUNDARY],
    prometheus: 'dsh_checkpoint_barrier_active',
  },
  [METRIC_OLDEST_AGE]: {
    kind: 'gauge',
    unit: 's',
    description: 'Age of the oldest open barrier; 0 when none is open.',
    attributes: [],
    prometheus: 'dsh_checkpoint_barrier_oldest_age_seconds',
  },
  [METRIC_UNFLUSHED_AGE]: {
    kind: 'gauge',
    unit: 's',
    description:
      "Age of the oldest event appended after its session's last good flush, over all live sessions; 0 when there is none.",
    attributes: [],
    prometheus: 'dsh_checkpoint_unflushed_oldest_age_seconds',
  },
  [METRIC_CONSECUTIVE_FAILURES]: {
    kind: 'gauge',
    unit: '{flush}',
    description: 'Flushes that failed in a row, the highest over all live sessions.',
    attributes: [],
    prometheus: 'dsh_checkpoint_consecutive_failures',
  },
  [METRIC_POLICY_ACTIVE]: {
    kind: 'gauge',
    unit: '{policy}',
    description: 'Checkpoint policies mounted in this process.',
    attributes: [],
    prometheus: 'dsh_checkpoint_policy_active',
  },
} as const satisfies Record<string, InstrumentSpec>

/** Default bounds of both duration histograms, in seconds: 50 µs to 60 s. */
export const DURATION_BUCKETS_SECONDS: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
]
/** Bounds of the events-per-flush histogram. */
export const EVENT_BUCKETS: readonly number[] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

/** `error.type` of a barrier that hit its limit. */
export const ERROR_TIMEOUT = 'timeout'
/** `error.type` of a flush in which no `session/flush` listener took part, under `requireConfirmed`. */
export const ERROR_UNCONFIRMED = 'unconfirmed'
/** Anything outside the closed set, the value OpenTelemetry reserves for it. */
export const OTHER = '_OTHER'

/** POSIX errno codes that storage answers with: full, over quota, broken, read-only, denied, gone, out of handles. */
export const STORAGE_ERRORS = [
  'ENOSPC',
  'EDQUOT',
  'EFBIG',
  'EIO',
  'EROFS',
  'EACCES',
  'EPERM',
  'ENOENT',
  'ENOTDIR',
  'EBADF',
  'EMFILE',
  'ENFILE',
  'ESTALE',
  'EBUSY',
  'ETIMEDOUT',
] as const
/** The closed set of `error.type`. */
export const ERROR_TYPES: readonly string[] = [...STORAGE_ERRORS, ERROR_TIMEOUT, ERROR_UNCONFIRMED, OTHER]

/** Distinct strategy names on metrics; later ones fold into `_OTHER`. */
export const MAX_STRATEGY_NAMES = 16

/** Labels of an exemplar, under the names that Prometheus and Grafana look for. */
export const EXEMPLAR_TRACE_ID = 'trace_id'
export const EXEMPLAR_SPAN_ID = 'span_id'

/** Families of the process, on the Prometheus endpoint alone; named as prom-client names them, so that its dashboards fit. */
export const FAMILY_PROCESS_START = 'process_start_time_seconds'
export const FAMILY_GC_DURATION = 'nodejs_gc_duration_seconds'
export const LABEL_GC_KIND = 'kind'
export const FAMILIES_EVENT_LOOP_LAG = {
  mean: 'nodejs_eventloop_lag_mean_seconds',
  p50: 'nodejs_eventloop_lag_p50_seconds',
  p90: 'nodejs_eventloop_lag_p90_seconds',
  p99: 'nodejs_eventloop_lag_p99_seconds',
  max: 'nodejs_eventloop_lag_max_seconds',
} as const
/** Bounds of the garbage collection histogram, in seconds. */
export const GC_BUCKETS_SECONDS: readonly number[] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
