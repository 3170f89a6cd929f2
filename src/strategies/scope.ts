/** Which agents a strategy applies to: the part of their Config that all shipped strategies share. */
import z from '@deepseek-ai/schemastery'
import picomatch from 'picomatch'
import type { Barrier } from '../barrier.ts'

/** Limits a strategy to some agents; a barrier of any other agent gets a plain flush. */
export interface ScopeConfig {
  /** Whether subagents take part: with all others, not at all, or alone. */
  subagents?: 'include' | 'exclude' | 'only'
  /** Ids or presets of the agents it applies to, exact or as globs. Empty: all. */
  agents?: string[]
  /** Ids or presets of agents it does not apply to, exact or as globs; stronger than `agents`. */
  exceptAgents?: string[]
}

/** Schema fields of {@link ScopeConfig}, to be spread into a strategy's own. */
export const scopeFields = {
  subagents: z
    .union([z.const('include'), z.const('exclude'), z.const('only')])
    .default('include')
    .description('Whether subagents take part: with all others, not at all, or alone.'),
  agents: z
    .array(z.string())
    .default([])
    .description('Agent ids or presets it applies to, names or globs. Empty: all.'),
  exceptAgents: z
    .array(z.string())
    .default([])
    .description('Agent ids or presets it does not apply to, names or globs.'),
}

/** The rules of {@link scopeFields} in words. */
export const scopeRules = {
  subagents: '"include", "exclude" or "only"',
  agents: 'a list of agent ids, presets or globs',
  exceptAgents: 'a list of agent ids, presets or globs',
} as const

/** What the schema cannot say about {@link scopeFields}. */
export const scopeChecks = { agents: isPatternList, exceptAgents: isPatternList }

/**
 * Whether a barrier belongs to an agent the strategy applies to. An agent that is not named anywhere yet (a title
 * request before the first step) matches no name.
 * @param config - a checked config.
 */
export function createScope({ subagents, agents, exceptAgents }: Required<ScopeConfig>): (barrier: Barrier) => boolean {
  const isIncluded = agents.length === 0 ? undefined : createMatcher(agents)
  const isExcluded = exceptAgents.length === 0 ? undefined : createMatcher(exceptAgents)
  return ({ agentId, agentPreset, delegationDepth }) => {
    if (subagents === 'exclude' && delegationDepth > 0) return false
    if (subagents === 'only' && delegationDepth === 0) return false
    const isNamed = (matches: (name: string) => boolean): boolean =>
      (agentId !== undefined && matches(agentId)) || (agentPreset !== undefined && matches(agentPreset))
    if (isExcluded !== undefined && isNamed(isExcluded)) return false
    return isIncluded === undefined || isNamed(isIncluded)
  }
}

/**
 * A test for names. A pattern matches the name it spells and, as a glob, every name it covers: `*` crosses `/` and
 * `.`, and a leading `!` is an ordinary character, because a list that matches everything by a slip would be unsafe.
 * @param patterns - names and globs, none empty.
 */
export function createMatcher(patterns: readonly string[]): (name: string) => boolean {
  const names = new Set(patterns)
  const globs = patterns.map((pattern) => picomatch(pattern, GLOB_OPTIONS))
  return (name) => names.has(name) || globs.some((matches) => matches(name))
}

const GLOB_OPTIONS = { bash: true, dot: true, nonegate: true } as const

/** Whether every entry can be a pattern. */
export function isPatternList(list: readonly string[]): boolean {
  return list.every((pattern) => pattern.trim() !== '')
}
