/**
 * The write of a step starts at once and overlaps what the host does before the next request; parallel calls share
 * one flush. An early write that fails is recorded and nothing more: each guarded barrier flushes anew, and its own
 * result decides.
 */
import type { Context } from '@deepseek-ai/cordis'
import z from '@deepseek-ai/schemastery'
import { checked, resolve } from '../config.ts'
import { SCOPE_NAME } from '../semconv.ts'
import { FLUSH, type CheckpointStrategy, type Decision } from '../strategy.ts'
import { groupFields, groupRules, type GroupConfig } from './group.ts'
import { createScope, scopeChecks, scopeFields, scopeRules, type ScopeConfig } from './scope.ts'

const PLUGIN = `${SCOPE_NAME}/strategies/pipelined`

/** Configuration of the pipelined strategy. */
type Config = GroupConfig & ScopeConfig

const Config: z<Config, Required<Config>> = checked<Config, Required<Config>>(
  PLUGIN,
  z.object({ ...groupFields, ...scopeFields }),
  { ...groupRules, ...scopeRules },
  scopeChecks,
)

const START: Decision = Object.freeze({ kind: 'start' })

function createStrategy(config: Required<Config>): CheckpointStrategy {
  const applies = createScope(config)
  const shared: Decision = Object.freeze({ kind: 'flush', group: true, delayMs: config.groupDelayMs })
  return {
    name: 'pipelined',
    decide(barrier) {
      if (!applies(barrier)) return FLUSH
      switch (barrier.boundary) {
        case 'step':
        case 'turn':
          return START
        case 'tool':
          return shared
        case 'request':
          return FLUSH
      }
    },
  }
}

export default {
  name: 'checkpoint-strategy-pipelined',
  Config,
  /** Provide the strategy for as long as the plugin is mounted. */
  apply(ctx: Context, config?: Config): void {
    ctx.provide('checkpointStrategy', createStrategy(resolve(Config, config)))
  },
}
