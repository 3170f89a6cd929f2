/** Log lines that are heard and cannot flood. */
import type { Context } from '@deepseek-ai/cordis'
import { SCOPE_NAME } from './semconv.ts'

/** The part of a logger that is used. */
export interface Logger {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** Rank of a warning in Cordis; an exporter that names no level takes ranks 0 and 1, errors and infos. */
const WARN = 2
const ERROR = 0
const DEFAULT_LEVEL = 1

/**
 * A logger whose warnings and errors are heard: where nothing takes them off the host, as in dsh's own profiles, they
 * become process warnings of Node, which go to standard error and can be silenced there.
 * @param ctx - context of the plugin that logs.
 * @param name - name shown with each line.
 */
export function createLogger(ctx: Context, name: string = SCOPE_NAME): Logger {
  const service: { readonly exporters?: unknown } = ctx.logger
  const logger = ctx.logger(name)
  const isHeard = (rank: number): boolean => {
    if (!(service.exporters instanceof Map)) return true
    // The first exporter is Cordis' own buffer, which nobody reads.
    const [, ...exporters] = service.exporters.values() as IterableIterator<{ levels?: Record<string, number> }>
    return exporters.some(({ levels }) => (levels?.[name] ?? levels?.['default'] ?? DEFAULT_LEVEL) >= rank)
  }
  const write = (level: 'warn' | 'error', rank: number) => (message: string) => {
    const line = oneLine(message)
    logger[level](line)
    if (!isHeard(rank)) process.emitWarning(line, 'CheckpointWarning')
  }
  const quiet = (level: 'debug' | 'info') => (message: string) => logger[level](oneLine(message))
  return { debug: quiet('debug'), info: quiet('info'), warn: write('warn', WARN), error: write('error', ERROR) }
}

/** A line is cut here: it may hold names that a model made up, and messages of somebody's errors. */
const MAX_LINE = 1_000

/** One line and no control characters, or a tool's name could forge a line of its own. */
function oneLine(message: string): string {
  return message.slice(0, MAX_LINE).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
}

/** Quiet time after a line of one kind. */
const INTERVAL_MS = 60_000

/** Writes at most one warning of each kind per minute, with the number of those held back. */
export class LimitedLog {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #kinds = new Map<string, { nextAt: number; held: number }>()

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger
  }

  /**
   * Warn, unless a line of this kind was written within the last minute.
   * @param kind - one of a fixed number of words, which bounds the memory.
   * @param message - built only when the line is written.
   */
  warn(kind: string, message: () => string): void {
    const now = performance.now()
    const state = this.#kinds.get(kind)
    if (state !== undefined && now < state.nextAt) {
      state.held += 1
      return
    }
    const held = state?.held ?? 0
    this.#kinds.set(kind, { nextAt: now + INTERVAL_MS, held: 0 })
    try {
      this.#logger.warn(held === 0 ? message() : `${message()} (${held} more like this since the last line)`)
    } catch {
      // The host's logger failed, or an error turned hostile when printed: there is nowhere left to say so.
    }
  }
}
