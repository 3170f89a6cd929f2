/**
 * The conformance suite for authors of strategies. Give it a strategy plugin: it runs the plugin on the real harness
 * core, breaks the disk, cancels, swaps and kills, and says in sentences what is wrong.
 *
 * It needs the harness packages and fast-check, which a project that writes strategies has as development dependencies.
 */
import {
  createReport,
  Findings,
  SCENARIOS,
  textOf,
  type Report,
  type ScenarioName,
  type ScenarioResult,
} from './report.ts'
import { cancellation } from './scenarios/cancellation.ts'
import { crash } from './scenarios/crash.ts'
import { decisions } from './scenarios/decisions.ts'
import { disposal } from './scenarios/disposal.ts'
import { failures } from './scenarios/failures.ts'
import { guarantees } from './scenarios/guarantees.ts'
import { interleavings } from './scenarios/interleavings.ts'
import { loading } from './scenarios/loading.ts'
import { traffic } from './scenarios/traffic.ts'
import { createSubject, type Subject, type SuiteOptions } from './subject.ts'
import { describeError } from './wait.ts'

export type { Finding, Report, ScenarioName, ScenarioResult } from './report.ts'
export type { SuiteOptions } from './subject.ts'

/** After a finding in one of these, or in the first of them, the rest would only say the same, slowly. */
const BASIC: readonly ScenarioName[] = ['loading', 'decisions', 'guarantees']
/** Time that {@link describeStrategy} allows the whole suite. */
const SUITE_LIMIT_MS = 120_000

/**
 * Run the suite over a strategy.
 * @param strategy - URL of the module whose default export is the plugin (`new URL('./mine.ts', import.meta.url)`), or
 *   the plugin itself; without a module no process can be killed, and the report says so.
 * @param config - the plugin's config.
 * @returns the report; findings do not throw.
 * @throws when the module cannot be imported.
 */
export async function checkStrategy(
  strategy: object | string | URL,
  config?: unknown,
  options: SuiteOptions = {},
): Promise<Report> {
  const subject = await createSubject(strategy, config, options)
  const findings = new Findings()
  const results: ScenarioResult[] = []
  const onUnhandled = (reason: unknown) =>
    findings.add('unhandled', `a promise was rejected and nobody handled it: ${describeError(reason)}`)
  process.on('unhandledRejection', onUnhandled)
  try {
    for (const scenario of SCENARIOS) {
      if (options.scenarios?.includes(scenario) === false) continue
      const note = reasonToSkip(scenario, subject, findings)
      if (note !== undefined) {
        results.push({ name: scenario, outcome: 'skipped', note, durationMs: 0 })
        continue
      }
      findings.scenario = scenario
      const startedAt = performance.now()
      await RUN[scenario](subject, findings).catch((error: unknown) => findings.add('threw', describeError(error)))
      // Rejections are reported a turn of the event loop after they happened.
      await new Promise((resolve) => setImmediate(resolve))
      const outcome = findings.of(scenario).length === 0 ? 'passed' : 'failed'
      results.push({ name: scenario, outcome, durationMs: performance.now() - startedAt })
    }
  } finally {
    process.off('unhandledRejection', onUnhandled)
  }
  return createReport(subject.seed, results, findings)
}

/** The part of a test runner that is needed: vitest, jest, mocha and node:test all have it. */
export interface TestRunner {
  readonly describe: (title: string, body: () => void) => unknown
  readonly it: (title: string, body: () => Promise<void>, timeoutMs?: number) => unknown
}

/**
 * Register the suite with a test runner, one test per scenario.
 * @param runner - `{ describe, it }` of the runner.
 */
export function describeStrategy(
  { describe, it }: TestRunner,
  title: string,
  strategy: object | string | URL,
  config?: unknown,
  options: SuiteOptions = {},
): void {
  let report: Promise<Report> | undefined
  describe(`strategy ${title}`, () => {
    for (const scenario of options.scenarios ?? SCENARIOS) {
      it(
        `conforms: ${scenario}`,
        async () => {
          report ??= checkStrategy(strategy, config, options)
          const { findings, seed } = await report
          const own = findings.filter((finding) => finding.scenario === scenario)
          if (own.length > 0) throw new Error(`${own.map(textOf).join('\n')}\n(seed ${seed})`)
        },
        SUITE_LIMIT_MS,
      )
    }
  })
}

function reasonToSkip(scenario: ScenarioName, { module }: Subject, findings: Findings): string | undefined {
  const needed = BASIC.includes(scenario) ? BASIC.slice(0, 1) : BASIC
  if (needed.some((basic) => basic !== scenario && findings.of(basic).length > 0))
    return 'repair the findings above first'
  if (scenario === 'crash' && module === undefined)
    return 'give the URL of the strategy module to have a process killed'
  return undefined
}

const RUN: Readonly<Record<ScenarioName, (subject: Subject, findings: Findings) => Promise<void>>> = {
  loading,
  decisions,
  guarantees,
  cancellation,
  failures,
  disposal,
  traffic,
  interleavings,
  crash,
}
