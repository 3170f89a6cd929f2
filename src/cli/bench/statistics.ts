/** Medians and how sure they are. */
import { median, quantileSorted, sampleWithReplacement } from 'simple-statistics'

export { median } from 'simple-statistics'

/** A median with its 95 % bootstrap interval. */
export interface Estimate {
  readonly median: number
  readonly low: number
  readonly high: number
}

const RESAMPLES = 1_000
const CONFIDENCE = 0.95

/**
 * The median of samples, and the percentile interval of medians of resamples.
 * @param samples - at least one; with fewer than six the interval is little more than the range.
 */
export function estimate(samples: readonly number[]): Estimate {
  const list = [...samples]
  return { median: median(list), ...interval(list, (drawn) => median(drawn)) }
}

/**
 * Percentile bootstrap interval of any figure of a list. The same samples give the same interval.
 * @param figure - computed from each resample.
 */
function interval<T>(samples: readonly T[], figure: (drawn: T[]) => number): { low: number; high: number } {
  const random = createRandom(samples.length)
  const list = [...samples]
  const figures = Array.from({ length: RESAMPLES }, () => figure(sampleWithReplacement(list, list.length, random)))
  figures.sort((a, b) => a - b)
  const tail = (1 - CONFIDENCE) / 2
  return { low: quantileSorted(figures, tail), high: quantileSorted(figures, 1 - tail) }
}

/** Each sample over its partner of the same round, so that a slow minute weighs on both. */
export function ratios(samples: readonly number[], reference: readonly number[]): number[] {
  return samples.slice(0, reference.length).map((sample, round) => sample / (reference[round] ?? Number.NaN))
}

/**
 * Whether a reference measured against itself is steady enough to read other ratios: its interval comes near 1 and
 * stays within {@link NOISE_LIMIT}.
 */
export function isSteady({ low, high }: Pick<Estimate, 'low' | 'high'>): boolean {
  return low <= 1 + NEAR && high >= 1 - NEAR && low >= NOISE_LIMIT.low && high <= NOISE_LIMIT.high
}

/** Widest interval of the reference against itself: a quarter either way. */
const NOISE_LIMIT = { low: 0.8, high: 1.25 } as const
/** How near. */
const NEAR = 0.05
/** The criterion in words. */
export const NOISE_RULE = `that interval must come within ${NEAR * 100} % of 1 and lie within ${NOISE_LIMIT.low} to ${NOISE_LIMIT.high}`

/** The same list in random order. */
export function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, key: Math.random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

/** Mulberry32: a small generator with a seed. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296
  }
}
