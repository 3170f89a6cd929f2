/** What is under test, and how hard. */
import type { ScenarioName } from './report.ts'

/** How the suite runs. */
export interface SuiteOptions {
  /** Config of the checkpoint policy; `allowUnguarded: true` for a strategy that releases calls. */
  readonly policy?: object
  /** Tools that the strategy is meant to release before their call is durable. Any other release is a finding. */
  readonly mayRelease?: readonly string[]
  /** Names of the two tools that the scripted model calls, for a strategy that goes by names. */
  readonly tools?: { readonly exclusive?: string; readonly parallel?: string }
  /** Longest wait at a barrier while the disk answers at once, in milliseconds. Default 250. */
  readonly maxWaitMs?: number
  /** Random interleavings. Default 25. */
  readonly rounds?: number
  /** Processes killed. Default 3. */
  readonly kills?: number
  /** Repeats a run. Default: a new one each time, printed in the report. */
  readonly seed?: number
  /** Scenarios to run. Default: all. */
  readonly scenarios?: readonly ScenarioName[]
}

/** A strategy under test with every option filled in. */
export interface Subject {
  readonly plugin: object
  readonly config: unknown
  /** URL of the module whose default export is the plugin; what a killed process imports. */
  readonly module: string | undefined
  readonly policy: object
  readonly mayRelease: ReadonlySet<string>
  readonly exclusive: string
  readonly parallel: string
  readonly maxWaitMs: number
  readonly rounds: number
  readonly kills: number
  readonly seed: number
}

/**
 * Fill in the options.
 * @param strategy - the plugin, or the URL of the module that exports it as its default.
 */
export async function createSubject(
  strategy: object | string | URL,
  config: unknown,
  options: SuiteOptions,
): Promise<Subject> {
  const module = typeof strategy === 'string' || strategy instanceof URL ? String(strategy) : undefined
  return {
    plugin: module === undefined ? (strategy as object) : await importPlugin(module),
    config,
    module,
    policy: options.policy ?? {},
    mayRelease: new Set(options.mayRelease),
    exclusive: options.tools?.exclusive ?? 'write',
    parallel: options.tools?.parallel ?? 'read',
    maxWaitMs: options.maxWaitMs ?? 250,
    rounds: options.rounds ?? 25,
    kills: options.kills ?? 3,
    seed: options.seed ?? Math.trunc(Math.random() * 0x7fff_ffff),
  }
}

/** The default export of a strategy module. */
export async function importPlugin(module: string): Promise<object> {
  const { default: plugin } = (await import(module)) as { default?: unknown }
  if ((typeof plugin !== 'object' && typeof plugin !== 'function') || plugin === null) {
    throw new TypeError(`${module}: a strategy module must have a plugin as its default export`)
  }
  return plugin
}
