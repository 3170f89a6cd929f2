/** What the policy takes from its host, once, and what it notices about it. */
import type { Context } from '@deepseek-ai/cordis'
import type { Session } from '@deepseek-ai/dsh-session'
import type {} from '@deepseek-ai/dsh-tools'
import type { IsParallel } from './batch.ts'
import type { SendFlush } from './ledger.ts'
import type { Logger } from './log.ts'

/** Told of a call that will not reach its barrier soon; `blocking` where the loop itself waits for it. */
type Strike = (session: Session, callId: string, blocking?: boolean) => void

/** What the policy captured from the host. Each read of a service through the context costs microseconds. */
export interface Host {
  readonly flush: SendFlush
  readonly getSession: (id: string) => Session | undefined
  readonly isLive: (session: Session) => boolean
  readonly isParallel: IsParallel
  /** Tool calls the loop runs at once. */
  readonly maxParallel: () => number
  /** From the first call on, be told of tool calls that never reach a barrier. */
  readonly watchToolPolicy: (strike: Strike) => void
}

/** Parallel tool calls of an agent loop that does not say. */
const DEFAULT_MAX_PARALLEL = 10

/**
 * Take from the host what the policy needs.
 * @param ctx - context of the policy, with its services.
 */
export function captureHost(ctx: Context): Host {
  const { tools } = ctx
  const sessions = unwrap(ctx.sessions)
  const getSession = sessions.get.bind(sessions) as Host['getSession']
  let watched = false
  return {
    flush: sessions.flush.bind(sessions),
    getSession,
    isLive: (session) => getSession(session.id) === session,
    isParallel: (call) => tools.executionMode({ ...call, signal: NEVER } as never).kind === 'parallel',
    maxParallel() {
      const loop: { config?: { maxParallelToolCalls?: number } } | undefined = ctx.get('agentLoop')
      return loop?.config?.maxParallelToolCalls ?? DEFAULT_MAX_PARALLEL
    },
    watchToolPolicy(strike) {
      if (watched) return
      watched = true
      watchToolPolicy(ctx, strike)
    },
  }
}

/** Say once, whichever came first, that a second checkpoint policy doubles every flush. */
export function noticeOtherPolicy(ctx: Context, logger: Logger): void {
  const own = ctx.fiber.runtime
  let said = false
  const look = () => {
    if (said) return
    for (const runtime of ctx.registry.values()) {
      if (runtime === own || runtime.name !== own?.name || runtime.fibers.length === 0) continue
      said = true
      logger.warn(
        'another checkpoint policy is mounted beside dsh-checkpoint-otel: every barrier flushes twice; ' +
          'disable the row session-checkpoint-policy',
      )
    }
  }
  ctx.on('internal/plugin', look)
  look()
}

/** Whether the application as a whole goes on: at its own end an unloaded policy is no news. */
export function isRunning(ctx: Context): boolean {
  return ctx.root.fiber.state === ACTIVE
}

/** Cordis' FiberState.ACTIVE: a const enum of the host, inlined because nothing of the host is imported at run time. */
const ACTIVE = 2
const NEVER = new AbortController().signal
/** Cordis hands out services wrapped for their caller, which doubles the cost of a flush; the key is its public symbol. */
const ORIGINAL = Symbol.for('cordis.original')

function unwrap<T extends object>(service: T): T {
  return (service as { [ORIGINAL]?: T })[ORIGINAL] ?? service
}

/**
 * A call that its policy denies or sends to a person, and one whose guard refuses it, never reaches a barrier, and its
 * siblings must not wait for it.
 */
function watchToolPolicy(ctx: Context, strike: Strike): void {
  ctx.on(
    'tools/pre-execute',
    async (exec, next) => {
      const { agent, callId } = exec
      if (agent === undefined || exec.parent !== undefined) return next()
      try {
        const decision = await next()
        // Guards answer at once after this hook: a call that they let through is at its barrier before the immediate.
        if (decision.kind === 'allow') setImmediate(() => strike(agent.session, callId))
        else strike(agent.session, callId, decision.kind === 'ask')
        return decision
      } catch (error) {
        strike(agent.session, callId)
        throw error
      }
    },
    { prepend: true },
  )
}
