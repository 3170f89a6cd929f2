/** How long parallel calls wait for each other: the part of Config that the grouping strategies share. */
import z from '@deepseek-ai/schemastery'
import { DEFAULT_GROUP_DELAY_MS, MAX_DELAY_MS } from '../strategy.ts'

/** Grouping of parallel calls. */
export interface GroupConfig {
  /**
   * Longest time the first call of a group waits for its siblings, in milliseconds. It is reached only when a
   * sibling's policy or guard takes that long: calls that are denied or ask a person are not waited for.
   */
  groupDelayMs?: number
}

/** Schema field of {@link GroupConfig}. */
export const groupFields = {
  groupDelayMs: z
    .number()
    .min(0)
    .max(MAX_DELAY_MS)
    .default(DEFAULT_GROUP_DELAY_MS)
    .description('Longest time the first of several parallel calls waits for its siblings, in milliseconds.'),
}

/** The rule of {@link groupFields} in words. */
export const groupRules = { groupDelayMs: `a number of milliseconds from 0 to ${MAX_DELAY_MS}` } as const
