/** What a sweep adds up. */
import type { Verdict } from './examine.ts'

/** One line of the table. */
export interface Tally {
  rounds: number
  effects: number
  lost: number
  unguarded: number
  unreadable: number
  recovered: number
  exempt: number
  torn: number
  /** Lives that ended before they came to their point. */
  survived: number
}

/** Nothing yet. */
export function emptyTally(): Tally {
  return { rounds: 0, effects: 0, lost: 0, unguarded: 0, unreadable: 0, recovered: 0, exempt: 0, torn: 0, survived: 0 }
}

/** Count one examined round. */
export function add(tally: Tally, verdict: Verdict): void {
  tally.rounds += 1
  tally.effects += verdict.effects
  tally.recovered += verdict.recovered
  tally.exempt += verdict.exempt
  tally.torn += verdict.torn > 0 ? 1 : 0
  tally.lost += verdict.lost.length
  tally.unguarded += verdict.unguarded.length
  tally.unreadable += verdict.unreadable.length
}
