/** A plugin beside the policy in a real profile: writes what `ctx.checkpoints` tells, and every log line, to a file. */
import { appendFileSync } from 'node:fs'
import type { Context } from '@deepseek-ai/cordis'
import type { CheckpointRecord } from '../../src/barrier.ts'

/** One line of the file. */
export type ProbeLine =
  | { readonly record: CheckpointRecord }
  | { readonly log: { readonly level: string; readonly logger: string; readonly text: string } }
  | { readonly strategy: string }

export const name = 'checkpoint-probe'

export function apply(ctx: Context, config: { readonly file: string }): void {
  const write = (line: ProbeLine) => appendFileSync(config.file, `${JSON.stringify(line)}\n`)
  ctx.logger.exporter({
    // The harness mounts no console, and warnings are above its default level.
    levels: { default: 3 },
    export: (message) =>
      write({ log: { level: message.type, logger: message.name, text: message.args.map(String).join(' ') } }),
  })
  ctx.inject(['checkpoints'], (scope) => {
    scope.effect(() => scope.checkpoints.observe((record) => write({ record })))
  })
  ctx.inject(['checkpointStrategy'], (scope) => write({ strategy: scope.checkpointStrategy.name }))
}
