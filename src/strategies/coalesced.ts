/**
 * Fewer writes, the same safety at every effect: the `step` barrier is left to the `request` barrier that always
 * follows it, and the parallel calls of one step share one flush.
 */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { checked, resolve } from '../config.ts'
import { SCOPE_NAME } from '../semconv.ts'
import { FLUSH, type CheckpointStrategy, type Decision } from '../strategy.ts'
import { groupFields, groupRules, type GroupConfig } from './group.ts'
import { createScope, scopeChecks, scopeFields, scopeRules, type ScopeConfig } from './scope.ts'

const PLUGIN = `${SCOPE_NAME}/strategies/coalesced`

/** Configuration of the coalesced strategy. */
type Config = GroupConfig & ScopeConfig

const Config: z<Config, Required<Config>> = checked<Config, Required<Config>>(
  PLUGIN,
  z.object({ ...groupFields, ...scopeFields }),
  { ...groupRules, ...scopeRules },
  scopeChecks,
)

const LEFT_TO_REQUEST: Decision = Object.freeze({ kind: 'skip', reason: 'the request that follows flushes' })

function createStrategy(config: Required<Config>): CheckpointStrategy {
  const applies = createScope(config)
  const shared: Decision = Object.freeze({ kind: 'flush', group: true, delayMs: config.groupDelayMs })
  return {
    name: 'coalesced',
    decide(barrier) {
      if (!applies(barrier)) return FLUSH
      switch (barrier.boundary) {
        case 'step':
          return LEFT_TO_REQUEST
        case 'tool':
          return shared
        case 'request':
        case 'turn':
          return FLUSH
      }
    },
  }
}

export default {
  name: 'checkpoint-strategy-coalesced',
  Config,
  /** Provide the strategy for as long as the plugin is mounted. */
  apply(ctx: Context, config?: Config): void {
    ctx.provide('checkpointStrategy', createStrategy(resolve(Config, config)))
  },
}
