/**
 * A live page of the barriers, on loopback: those open now with their age, the last and the slowest, outcomes, waiting
 * times, decisions, failures. The same as JSON at `/api/state`.
 *
 * It needs nothing but the checkpoint policy. Its memory is bounded, and without an open page it only counts. Unlike the
 * metrics it shows session ids, call ids and the names of tools, agents and models; it never has prompts, arguments,
 * results or error messages.
 */
import type { Context } from '@deepseek-ai/cordis'
import { resolve } from './config.ts'
import { LocalServer } from './http/server.ts'
import { Config, PLUGIN } from './inspector/config.ts'
import { createHandler } from './inspector/handler.ts'
import { Recorder } from './inspector/recorder.ts'
import { Streams } from './inspector/streams.ts'
import { createLogger, LimitedLog } from './log.ts'

export { Config } from './inspector/config.ts'
export type { InspectorState, InspectorSummary, InspectorUpdate } from './inspector/state.ts'

export const name = PLUGIN
/** Without a policy there is nothing to see; the page comes and goes with it. */
export const inject = ['checkpoints']

/**
 * Serve the page.
 * @param ctx - plugin context that owns the page.
 * @param config - see {@link Config}; zero config serves http://127.0.0.1:9465/.
 */
export function apply(ctx: Context, config?: Config): void {
  const { checkpoints } = ctx
  const resolved = resolve(Config, config)
  const logger = createLogger(ctx, PLUGIN)
  const log = new LimitedLog(logger)
  const recorder = new Recorder(checkpoints)

  ctx.effect(
    () =>
      checkpoints.observe(function inspector(record) {
        recorder.record(record)
      }),
    'checkpoint inspector',
  )
  ctx.effect(() => {
    const streams = new Streams(recorder, (error) => {
      log.warn('stream', () => `${PLUGIN}: an update of the page failed: ${String(error)}`)
    })
    const server = new LocalServer({
      plugin: PLUGIN,
      config: resolved,
      path: '/',
      serves: 'live barriers',
      unreachable: 'barriers are recorded but nobody can look at them',
      answer: createHandler({ config: resolved, log, recorder, streams }),
      logger,
      log,
    })
    server.open()
    return () => server.close()
  }, 'inspector page')
}
