/** What is compared: a checkpoint policy with its strategy, and the settings of the backend it writes to. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import * as policy from '../../index.ts'
import coalesced from '../../strategies/coalesced.ts'
import pipelined from '../../strategies/pipelined.ts'
import selective from '../../strategies/selective.ts'

/** `stock` is the policy this package replaces, `default` is ours without a strategy. */
export const STRATEGIES = ['stock', 'default', 'coalesced', 'pipelined', 'selective'] as const
export type StrategyName = (typeof STRATEGIES)[number]
/** How the backend encodes a log. */
export const ENCODINGS = ['zstd', 'raw', 'sqlite'] as const
type Encoding = (typeof ENCODINGS)[number]

/** Settings of the backend. */
export interface Setting {
  readonly encoding: Encoding
  /** `writeBatchMaxDelayMs`: how long an event may wait for write-behind. */
  readonly delayMs: number
}

/** One thing to measure. */
export interface Variant extends Setting {
  readonly strategy: StrategyName
}

/** Defaults of the backend, and so of most installations. */
export const DEFAULT_SETTING: Setting = { encoding: 'zstd', delayMs: 200 }

/** Parts of the host that may be installed or not. */
export interface OptionalParts {
  readonly stock?: object
  readonly sqlite?: object
  /** What is not there, in words. */
  readonly absent: readonly string[]
}

const STOCK = '@deepseek-ai/dsh-session-checkpoint-policy'
const SQLITE = '@deepseek-ai/dsh-session-persistence-sqlite'

/** Find the optional parts. */
export async function loadOptionalParts(): Promise<OptionalParts> {
  const [stock, sqlite] = await Promise.all([load(STOCK), load(SQLITE)])
  const absent = [stock, sqlite].flatMap((part) => ('absent' in part ? [part.absent] : []))
  return {
    stock: 'module' in stock ? (stock.module as object) : undefined,
    sqlite: 'module' in sqlite ? createSqlite(sqlite.module as SqliteModule) : undefined,
    absent,
  }
}

async function load(name: string): Promise<{ module: unknown } | { absent: string }> {
  try {
    return { module: (await import(name)) as unknown }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return {
      absent:
        code === 'ERR_MODULE_NOT_FOUND'
          ? `${name} is not installed`
          : `${name} does not load with this host (${String(error)})`,
    }
  }
}

interface SqliteModule {
  readonly default: { new (ctx: Context, config: unknown): object; readonly Config: (config: object) => unknown }
}

/** The backend under the settings of the JSONL one, which the harness gives. */
function createSqlite({ default: Backend }: SqliteModule): object {
  const Base = Backend as { new (ctx: Context, config: unknown): object }
  return class SqliteUnderJsonlSettings extends Base {
    static readonly Config = undefined

    constructor(ctx: Context, { root, writeBatchMaxDelayMs }: { root: string; writeBatchMaxDelayMs: number }) {
      mkdirSync(root, { recursive: true })
      super(ctx, Backend.Config({ path: join(root, 'sessions.db'), writeBatchMaxDelayMs }))
    }
  }
}

/** Plugins of a strategy, in the order they are mounted. */
export function pluginsOf(
  strategy: StrategyName,
  { stock }: OptionalParts,
): readonly (readonly [plugin: object, config?: unknown])[] {
  switch (strategy) {
    case 'stock':
      return stock === undefined ? [] : [[stock]]
    case 'default':
      return [[policy, {}]]
    case 'coalesced':
      return [
        [policy, {}],
        [coalesced, {}],
      ]
    case 'pipelined':
      return [
        [policy, {}],
        [pipelined, {}],
      ]
    case 'selective':
      // Every tool released: the most it can save.
      return [
        [policy, { allowUnguarded: true }],
        [selective, { tools: ['*'] }],
      ]
  }
}

/** `coalesced, raw, 200 ms`. */
export function nameOf({ strategy, ...setting }: Variant): string {
  return `${strategy}, ${settingName(setting)}`
}

/** `raw, 200 ms`. */
export function settingName({ encoding, delayMs }: Setting): string {
  return `${encoding}, ${delayMs} ms`
}

/** Whether two settings are one. */
export function isSameSetting(a: Setting, b: Setting): boolean {
  return a.encoding === b.encoding && a.delayMs === b.delayMs
}
