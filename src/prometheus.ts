/**
 * A scrape endpoint for Prometheus, fed by the checkpoint policy and without any OpenTelemetry SDK.
 *
 * The families, labels and buckets are those of the telemetry contract, so one dashboard fits every path. Counters begin
 * at 0 again when the plugin or the policy is loaded again: Prometheus takes that for a restart, and what was counted
 * after its last scrape is lost. The server neither keeps the process alive nor, when its port is taken, stops the host:
 * metrics are kept and the port is tried again.
 */
import type { Context } from '@deepseek-ai/cordis'
import { resolve } from './config.ts'
import { LocalServer } from './http/server.ts'
import { createLogger, LimitedLog } from './log.ts'
import { Config, PLUGIN } from './prometheus/config.ts'
import { Exposition } from './prometheus/exposition.ts'
import { CheckpointMetrics } from './prometheus/metrics.ts'
import { RuntimeMetrics } from './prometheus/runtime.ts'
import { createScrapeHandler } from './prometheus/scrape.ts'

export { Config } from './prometheus/config.ts'

export const name = PLUGIN
/** Without a policy there is nothing to measure; the endpoint comes and goes with it. */
export const inject = ['checkpoints']

/**
 * Serve the metrics of the checkpoint policy.
 * @param ctx - plugin context that owns the endpoint.
 * @param config - see {@link Config}; zero config serves http://127.0.0.1:9464/metrics.
 */
export function apply(ctx: Context, config?: Config): void {
  const { checkpoints } = ctx
  const resolved = resolve(Config, config)
  const logger = createLogger(ctx, PLUGIN)
  const log = new LimitedLog(logger)
  const exposition = new Exposition()
  const metrics = new CheckpointMetrics(checkpoints, exposition)

  ctx.effect(
    () =>
      checkpoints.observe(function prometheus(record) {
        metrics.record(record)
      }),
    'checkpoint metrics',
  )
  ctx.effect(() => {
    const runtime = new RuntimeMetrics(exposition)
    const server = new LocalServer({
      plugin: PLUGIN,
      config: resolved,
      path: resolved.path,
      serves: 'metrics',
      unreachable: 'metrics are kept but nobody can scrape them',
      answer: createScrapeHandler({
        config: resolved,
        log,
        render: (format) => {
          metrics.refresh()
          runtime.refresh()
          return exposition.render(format)
        },
      }),
      logger,
      log,
    })
    server.open()
    return async () => {
      runtime.dispose()
      await server.close()
    }
  }, 'metrics endpoint')
}
