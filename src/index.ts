/**
 * The checkpoint policy: the agent waits until its session log is durable before a model adapter gets a request, before
 * a top-level tool body runs and at each step. Here are the hooks; what a barrier does is decided in checkpoint.ts.
 */
import type { Context } from '@deepseek-ai/cordis'
import type {} from '@deepseek-ai/dsh-agent'
import type { GenerateOptions, StreamChunk } from '@deepseek-ai/dsh-llm'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import type {} from '@deepseek-ai/dsh-session-persistence'
import type { ToolExecutionResult } from '@deepseek-ai/dsh-tools'
import { Checkpoint } from './checkpoint.ts'
import { Config, resolve } from './config.ts'
import { captureHost, isRunning, noticeOtherPolicy } from './host.ts'
import type { Ledger } from './ledger.ts'
import { subjectOf, type LiveBarrier } from './live-barrier.ts'
import { createLogger, LimitedLog } from './log.ts'
import { recoveredCalls } from './recovery.ts'
import { isStrategy } from './strategy.ts'
import { GatedStream } from './stream.ts'

export type * from './barrier.ts'
export type { CheckpointObserver, Checkpoints, CheckpointState } from './checkpoints.ts'
export { Config } from './config.ts'
export { CheckpointError } from './errors.ts'
export type { CheckpointStrategy, Decision } from './strategy.ts'

/** The stock policy's plugin name: this one takes its place. */
export const name = 'session-checkpoint-policy'
/** The stock policy's services. */
export const inject = ['llm', 'sessionPersistence', 'sessions', 'tools']

/**
 * Mount the policy. Mount it once, at the root: it sees every agent, subagents too.
 * @param ctx - plugin context that owns the hooks.
 * @param config - see {@link Config}; zero config gives the stock policy's guarantees.
 */
export function apply(ctx: Context, config?: Config): void {
  const logger = createLogger(ctx)
  const log = new LimitedLog(logger)
  const host = captureHost(ctx)
  const checkpoint = new Checkpoint(host, resolve(Config, config), log)
  const { telemetry } = checkpoint

  // request: nothing happens until the first pull.
  ctx.on('llm/stream', (options, next) => {
    const session = options.sessionId === undefined ? undefined : host.getSession(options.sessionId)
    return session === undefined ? next() : gateRequest(checkpoint, checkpoint.ledger(session), options, next)
  })

  // tool: after pre-execute policy and guards, before the body; nested dispatches ride on the outer call's barrier.
  ctx.on('tools/execute', async (exec, next) => {
    const { agent } = exec
    if (agent === undefined || exec.parent !== undefined) return next()
    const ledger = checkpoint.ledger(agent.session)
    ledger.agentId = agent.id
    ledger.agent = agent
    const subject = subjectOf('tool', ledger, { callId: exec.callId, toolName: exec.name })
    const barrier = checkpoint.open(subject, ledger, exec.signal, telemetry.parent(ledger))
    if (barrier.ready !== undefined) await barrier.ready
    if (!checkpoint.settle(barrier)) return abortedBeforeDispatch()
    return telemetry.run(barrier.parent, next)
  })

  // step: the response and results of the last step are durable before the next request is derived from them.
  ctx.on('agent/pre-step', async ({ agent, turn, step, signal }, next) => {
    const ledger = checkpoint.ledger(agent.session)
    ledger.agentId = agent.id
    ledger.turn = turn
    ledger.step = step
    const barrier = checkpoint.open(subjectOf('step', ledger), ledger, signal, telemetry.parent(ledger))
    if (barrier.ready !== undefined) await barrier.ready
    // The loop looks at its signal right after this hook and would throw the same reason.
    if (!checkpoint.settle(barrier)) throw signal.reason
    return telemetry.run(barrier.parent, next)
  })

  ctx.on('session/event', (session, event) => keepBooks(checkpoint, checkpoint.ledger(session), event))
  ctx.on('session/created', (session) => {
    const ledger = checkpoint.ledger(session)
    ledger.turnOpen = false
    try {
      checkpoint.recovered(ledger, recoveredCalls(session))
    } catch (error) {
      // A throw from here would veto the session; what cannot be read is not counted.
      log.warn('recovery', () => `cannot read the recovered calls of session ${session.id}: ${String(error)}`)
    }
  })
  ctx.on('session/disposed', (session) => checkpoint.sessionEnded(session))

  ctx.provide('checkpoints', checkpoint.service)
  checkpoint.follow(undefined)
  ctx.inject(['checkpointStrategy'], (scope) => {
    const strategy: unknown = scope.checkpointStrategy
    if (!isStrategy(strategy)) {
      logger.error(`checkpointStrategy must be an object with a name and a decide function; the default strategy stays`)
      return
    }
    checkpoint.follow(strategy)
    scope.effect(() => () => checkpoint.follow(undefined), 'checkpoint strategy')
  })

  noticeOtherPolicy(ctx, logger)
  ctx.effect(() => {
    telemetry.mount()
    const timer = setInterval(() => checkpoint.tick(), HOUSEKEEPING_MS)
    timer.unref()
    return () => {
      clearInterval(timer)
      const appEnds = !isRunning(ctx)
      checkpoint.unload(appEnds)
      if (!appEnds) {
        logger.warn('the checkpoint policy was unloaded: until it is mounted again nothing waits for the session log')
      }
    }
  }, 'checkpoint policy')
}

const HOUSEKEEPING_MS = 1_000

function gateRequest(
  checkpoint: Checkpoint,
  ledger: Ledger,
  options: GenerateOptions,
  next: () => AsyncIterable<StreamChunk>,
): AsyncIterable<StreamChunk> {
  const { telemetry } = checkpoint
  const parent = telemetry.parent(ledger)
  let barrier: LiveBarrier | undefined
  const settle = (): boolean => barrier !== undefined && checkpoint.settle(barrier)
  return new GatedStream<StreamChunk>({
    open() {
      const subject = subjectOf('request', ledger, options)
      barrier = checkpoint.open(subject, ledger, options.signal, parent)
      return barrier.ready
    },
    settle,
    cancel() {
      barrier?.cancel()
      settle()
    },
    release: next,
    run: (call) => telemetry.run(parent, call),
    // A stream that just ends reads as an empty success to consumers that do not look at their signal.
    aborted: () => ({
      type: 'finish',
      reason: { kind: 'aborted', failure: { message: 'request aborted', code: 'ABORTED' } },
    }),
  })
}

/** Keep the session's books in step with its log. */
function keepBooks(checkpoint: Checkpoint, ledger: Ledger, event: SessionEvent): void {
  ledger.appended()
  switch (event.type) {
    case 'turn/start':
      ledger.turn = event.data.turn
      ledger.step = undefined
      ledger.turnOpen = true
      checkpoint.telemetry.turnStarted(ledger)
      break
    case 'step/start':
      ledger.step = event.data.step
      break
    case 'assistant/message':
      ledger.message = event.data.message.content
      break
    case 'step/end':
      ledger.message = []
      ledger.batch = undefined
      break
    case 'turn/end':
      ledger.turnOpen = false
      // Not inside the append: the backend may hear of this event after us.
      queueMicrotask(() => {
        checkpoint.startWrite(ledger)
        checkpoint.telemetry.turnEnded(ledger)
      })
      break
    default:
      break
  }
}

/** The host's canonical result for a call that was cancelled before its body; the code is inlined, not imported. */
function abortedBeforeDispatch(): ToolExecutionResult {
  return {
    content: [{ type: 'text', text: 'Error: tool call aborted before dispatch' }],
    isError: true,
    error: {
      message: 'tool call aborted before dispatch',
      info: { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' },
    },
  }
}
