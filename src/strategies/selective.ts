/**
 * Tools that the operator names do not wait: for calls whose loss in a crash is harmless, reads above all. Every other
 * boundary flushes as without a strategy.
 */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { checked, resolve } from '../config.ts'
import { SCOPE_NAME } from '../semconv.ts'
import { FLUSH, type CheckpointStrategy, type Decision } from '../strategy.ts'
import {
  createMatcher,
  createScope,
  isPatternList,
  scopeChecks,
  scopeFields,
  scopeRules,
  type ScopeConfig,
} from './scope.ts'

const PLUGIN = `${SCOPE_NAME}/strategies/selective`

/** Configuration of the selective strategy. */
interface Config extends ScopeConfig {
  /** Tools that do not wait: exact names and globs. */
  tools?: string[]
}

const TOOLS_RULE = 'a list of at least one tool name or glob'

const Config: z<Config, Required<Config>> = checked<Config, Required<Config>>(
  PLUGIN,
  z.object({
    tools: z.array(z.string()).default([]).description('Tools that do not wait: exact names and globs.'),
    ...scopeFields,
  }) as unknown as z<Config, Required<Config>>,
  { tools: TOOLS_RULE, ...scopeRules },
  { tools: (tools) => tools.length > 0 && isPatternList(tools), ...scopeChecks },
)

const RELEASED: Decision = Object.freeze({ kind: 'skip', reason: 'the operator released this tool' })

function createStrategy(config: Required<Config>): CheckpointStrategy {
  const applies = createScope(config)
  const isReleased = createMatcher(config.tools)
  return {
    name: 'selective',
    decide(barrier) {
      const { boundary, toolName } = barrier
      return boundary === 'tool' && toolName !== undefined && isReleased(toolName) && applies(barrier)
        ? RELEASED
        : FLUSH
    },
  }
}

export default {
  name: 'checkpoint-strategy-selective',
  /** The policy itself: whether it allows a release is asked before anything is provided. */
  inject: ['checkpoints'],
  Config,
  /**
   * Provide the strategy for as long as the plugin is mounted.
   * @throws when no tool is named, or the policy would overrule every answer.
   */
  apply(ctx: Context, config?: Config): void {
    const resolved = resolve(Config, config)
    if (!ctx.checkpoints.allowUnguarded) {
      throw new Error(
        `${PLUGIN}: the tools it names run before their call is durable, which the checkpoint policy does not allow; ` +
          'set allowUnguarded: true in the config of dsh-checkpoint-otel, or unmount this strategy',
      )
    }
    ctx.provide('checkpointStrategy', createStrategy(resolved))
  },
}
