/** What the conformance suite found, in sentences for the author of a strategy. */

/** The parts of the suite, in the order they run. */
export const SCENARIOS = [
  'loading',
  'decisions',
  'guarantees',
  'cancellation',
  'failures',
  'disposal',
  'traffic',
  'interleavings',
  'crash',
] as const
export type ScenarioName = (typeof SCENARIOS)[number]

/** One thing that is wrong; the same thing seen again only counts. */
export interface Finding {
  readonly scenario: ScenarioName
  /** What is wrong, and where it was seen first. */
  readonly message: string
  readonly count: number
}

/** What became of one scenario. */
export interface ScenarioResult {
  readonly name: ScenarioName
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped. */
  readonly note?: string
  readonly durationMs: number
}

/** The result of a whole run. */
export interface Report {
  /** Name of the strategy, as far as it got to say it. */
  readonly strategy: string
  readonly ok: boolean
  /** Repeats the random parts of this run. */
  readonly seed: number
  readonly scenarios: readonly ScenarioResult[]
  readonly findings: readonly Finding[]
  /** The report as text. */
  toString(): string
}

/** Distinct findings kept; more of them say nothing new. */
const MAX_FINDINGS = 50

/** Collects findings. */
export class Findings {
  readonly #byKey = new Map<string, { scenario: ScenarioName; message: string; count: number }>()
  /** Scenario that runs now. */
  scenario: ScenarioName = 'loading'
  /** Name of the strategy, once it is known. */
  strategy = '?'

  /**
   * Note something wrong.
   * @param rule - which rule was broken, a fixed word: later findings of the same rule and scenario only count.
   * @param message - where it was seen, in a sentence.
   */
  add(rule: string, message: string): void {
    const key = `${this.scenario} ${rule}`
    const known = this.#byKey.get(key)
    if (known !== undefined) known.count += 1
    else if (this.#byKey.size < MAX_FINDINGS) this.#byKey.set(key, { scenario: this.scenario, message, count: 1 })
  }

  get count(): number {
    return this.#byKey.size
  }

  of(scenario: ScenarioName): Finding[] {
    return this.all().filter((finding) => finding.scenario === scenario)
  }

  all(): Finding[] {
    return [...this.#byKey.values()].map((finding) => Object.freeze({ ...finding }))
  }
}

/** Make the report of a run. */
export function createReport(seed: number, scenarios: readonly ScenarioResult[], findings: Findings): Report {
  const all = findings.all()
  const { strategy } = findings
  return {
    strategy,
    ok: all.length === 0,
    seed,
    scenarios,
    findings: all,
    toString() {
      const head =
        all.length === 0 ? 'conforms' : `does not conform: ${all.length} finding${all.length === 1 ? '' : 's'}`
      const lines = [`strategy "${strategy}" ${head} (seed ${seed})`]
      for (const { name, outcome, note, durationMs } of scenarios) {
        lines.push(
          `  ${outcome.padEnd(7)} ${name} (${Math.round(durationMs)} ms)${note === undefined ? '' : `: ${note}`}`,
        )
        for (const finding of findings.of(name)) lines.push(`    - ${textOf(finding)}`)
      }
      return lines.join('\n')
    },
  }
}

/** One finding as a line. */
export function textOf({ message, count }: Finding): string {
  return count === 1 ? message : `${message} (${count} times)`
}
