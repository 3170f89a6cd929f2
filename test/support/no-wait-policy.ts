/** A policy as it must not be: it flushes at every guarded boundary and waits for nothing. */
import type { Context } from '@deepseek-ai/cordis'
import type {} from '@deepseek-ai/dsh-llm'
import type { Session } from '@deepseek-ai/dsh-session'
import type {} from '@deepseek-ai/dsh-tools'

export const name = 'no-wait-policy'
export const inject = ['llm', 'sessions', 'tools']

export function apply(ctx: Context): void {
  const { sessions } = ctx
  const flush = (session: Session | undefined) => {
    if (session !== undefined) sessions.flush(session).catch(() => {})
  }
  ctx.on('llm/stream', ({ sessionId }, next) => {
    flush(sessionId === undefined ? undefined : sessions.get(sessionId))
    return next()
  })
  ctx.on('tools/execute', (exec, next) => {
    flush(exec.agent?.session)
    return next()
  })
}
