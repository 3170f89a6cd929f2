/** Points at every hook of the host: outside the policy, and inside it, where only what it released arrives. */
import type { Context } from '@deepseek-ai/cordis'
import { reach } from './points.ts'
import type { SideFile } from './side-file.ts'

const OUTERMOST = { prepend: true } as const

/**
 * Hooks around the policy. They also note what the policy had to guard.
 * @param isForeign - the policy is not ours and provides nothing to see that it is mounted.
 */
export function outerHooks(side: SideFile, isForeign: boolean): object {
  return {
    name: 'outer-points',
    apply(ctx: Context) {
      const isMounted = () => isForeign || (ctx.get('checkpoints') as unknown) !== undefined
      const around = async <T>(point: string, next: () => Promise<T>): Promise<T> => {
        reach(`${point}:before`)
        const result = await next()
        reach(`${point}:after`)
        return result
      }
      ctx.on('agent/pre-step', (_step, next) => around('pre-step', next), OUTERMOST)
      ctx.on('agent/request', (_request, next) => around('request', next as never), OUTERMOST)
      ctx.on('tools/pre-execute', (_exec, next) => around('pre-execute', next), OUTERMOST)
      ctx.on(
        'tools/execute',
        (exec, next) => {
          if (exec.agent !== undefined) side.dispatching(exec.callId, exec.agent.session.id, isMounted())
          return around('execute', next)
        },
        OUTERMOST,
      )
      ctx.on('tools/post-execute', (_exec, _result, next) => around('post-execute', next), OUTERMOST)
      ctx.on('agent/turn-stopping', () => reach('turn-stopping'))
      ctx.on(
        'llm/stream',
        (options, next) => {
          const session = options.sessionId === undefined ? undefined : ctx.sessions.get(options.sessionId)
          if (session !== undefined) side.streaming(options, session.seq, isMounted())
          reach('stream:asked')
          return next()
        },
        OUTERMOST,
      )
      // Before the backend hears of the event, and after everybody did.
      ctx.on('session/event', (_session, event) => reach(`append ${event.type}:before`), OUTERMOST)
      ctx.on('session/event', (_session, event) => reach(`append ${event.type}:after`))
      ctx.on('session/flush', () => reach('flush:begin'), OUTERMOST)
    },
    inject: ['sessions'],
  }
}

/** Hooks inside the policy; mount after it. */
export function innerHooks(): object {
  const released = <T>(point: string, next: () => T): T => {
    reach(`${point}:released`)
    return next()
  }
  return {
    name: 'inner-points',
    apply(ctx: Context) {
      ctx.on('agent/pre-step', (_step, next) => released('pre-step', next))
      ctx.on('tools/execute', (_exec, next) => released('execute', next))
      ctx.on('llm/stream', (_options, next) => released('stream', next))
    },
  }
}
