/** Which deaths a sweep tries: every point under every strategy and encoding, then seeded random ones. */
import { createRandom } from '../../src/testing/wait.ts'
import type { Plan } from './plan.ts'
import type { Target } from './points.ts'

/** A shipped strategy as a life mounts it. */
export interface Subject {
  readonly name: string
  readonly strategy?: Plan['strategy']
  readonly policy: object
  /** Tools it is meant to release. */
  readonly mayRelease: ReadonlySet<string>
}

const module = (name: string) => new URL(`../../src/strategies/${name}.ts`, import.meta.url).href
const NONE: ReadonlySet<string> = new Set()

/** Every shipped strategy. */
export const SUBJECTS: readonly Subject[] = [
  { name: 'default', policy: {}, mayRelease: NONE },
  { name: 'coalesced', policy: {}, strategy: { module: module('coalesced'), config: {} }, mayRelease: NONE },
  { name: 'pipelined', policy: {}, strategy: { module: module('pipelined'), config: {} }, mayRelease: NONE },
  {
    name: 'selective',
    policy: { allowUnguarded: true },
    strategy: { module: module('selective'), config: { tools: ['read'] } },
    mayRelease: new Set(['read']),
  },
]

/** Both encodings of the JSONL backend. */
const ENCODINGS = ['none', 'zstd'] as const

/** What happens after the death. */
type Aftermath = 'killed' | 'power cut' | 'killed again while resuming'

/** One death. */
export interface Round {
  readonly subject: Subject
  readonly compression: (typeof ENCODINGS)[number]
  readonly target: Target
  /** Group for the table. */
  readonly fault: string
  readonly aftermath: Aftermath
  /** Share of unsynced bytes that a power cut spares. */
  readonly kept: number
  /** Where the second life dies. */
  readonly again: Target
}

/**
 * Deaths in an order that a seed repeats. The first ones pass every point once, with strategies, encodings and aftermaths
 * taking turns; further ones complete the product; what remains is random.
 * @param points - the points of a whole life with how often it passes them, by strategy name.
 */
export function* plannedRounds(
  points: ReadonlyMap<string, Readonly<Record<string, number>>>,
  seed: number,
): Generator<Round> {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const names = shuffled([...new Set([...points.values()].flatMap((counts) => Object.keys(counts)))], random)
  const combinations = shuffled(
    SUBJECTS.flatMap((subject) => ENCODINGS.map((compression) => ({ subject, compression }))),
    random,
  )
  const make = (combination: (typeof combinations)[number], point: string | undefined): Round => {
    const counts = points.get(combination.subject.name) ?? {}
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    const laterMs = random() < 0.5 ? undefined : random() * 3
    const chance = random()
    return {
      ...combination,
      target: point === undefined ? { hit: 1 + below(total), laterMs } : { point, hit: 1 + below(counts[point] ?? 1) },
      fault: point === undefined ? 'random moment' : faultOf(point),
      aftermath: chance < 0.5 ? 'killed' : chance < 0.8 ? 'power cut' : 'killed again while resuming',
      kept: random() < 0.5 ? 0 : random(),
      // A resumed life begins with its repair: early points are the interesting ones.
      again: { hit: 1 + below(random() < 0.5 ? 12 : total) },
    }
  }
  for (let shift = 0; shift < combinations.length; shift += 1) {
    for (const [index, point] of names.entries()) {
      const combination = combinations[(index + shift) % combinations.length]
      if (combination === undefined || points.get(combination.subject.name)?.[point] === undefined) continue
      yield make(combination, point)
      if (index % 4 === 3) yield make(combinations[below(combinations.length)] ?? combination, undefined)
    }
  }
  for (;;) yield make(combinations[below(combinations.length)] as (typeof combinations)[number], undefined)
}

/** Groups of points in the table; the first that matches counts. */
const FAULTS: readonly (readonly [pattern: RegExp, fault: string])[] = [
  [/inside-write$/, 'inside a file write'],
  [/-write$|-link$|before-sync$/, 'between write and fsync'],
  [/after-sync$/, 'between fsync and return'],
  [/^append /, 'around an event'],
  [/^body/, 'in a tool body'],
  [/^adapter/, 'in the model adapter'],
  [/^swap/, 'while the strategy is swapped'],
  [/^reload/, 'while the policy is reloaded'],
  [/^dispose/, 'while the application ends'],
]

function faultOf(point: string): string {
  return FAULTS.find(([pattern]) => pattern.test(point))?.[1] ?? 'around a hook'
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item)
}
