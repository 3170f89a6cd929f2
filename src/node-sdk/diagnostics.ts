/** What the SDK says about itself, in the host's log: rate-limited, short, and without secrets. */
import { DiagLogLevel, type DiagLogger } from '@opentelemetry/api'
import type { LimitedLog, Logger } from '../log.ts'
import type { ResolvedConfig } from './config.ts'
import { readEnv } from './environment.ts'

/** `OTEL_LOG_LEVEL`, else warnings and errors. */
export function diagLevel(): DiagLogLevel {
  const name = readEnv('OTEL_LOG_LEVEL')?.toUpperCase() as keyof typeof DiagLogLevel | undefined
  return (name === undefined ? undefined : DiagLogLevel[name]) ?? DiagLogLevel.WARN
}

/**
 * A logger for the API's `diag`. Errors and warnings are held to one line a minute each; what is below them was asked for
 * with OTEL_LOG_LEVEL and is passed on.
 */
export function createDiagLogger(
  logger: Pick<Logger, 'debug' | 'info'>,
  log: LimitedLog,
  redact: (text: string) => string,
): DiagLogger {
  const say =
    (write: (message: string) => void) =>
    (...args: unknown[]) => {
      try {
        write(redact(describe(args)))
      } catch {
        // The host's logger failed, or an argument turned hostile when printed: there is nowhere left to say so.
      }
    }
  return {
    error: (...args) => log.warn('sdk error', () => `OpenTelemetry: ${redact(describe(args))}`),
    warn: (...args) => log.warn('sdk warning', () => `OpenTelemetry: ${redact(describe(args))}`),
    info: say((message) => logger.info(message)),
    debug: say((message) => logger.debug(message)),
    verbose: say((message) => logger.debug(message)),
  }
}

/** Replaces every secret that configuration and variables hold: header values, and credentials and queries in URLs. */
export function createRedactor(config: ResolvedConfig): (text: string) => string {
  const secrets = new Set<string>()
  const add = (text: string) => {
    if (text.length >= MIN_SECRET) secrets.add(text)
  }
  for (const value of Object.values(config.headers)) for (const part of [value, ...value.split(/\s+/)]) add(part)
  for (const name of ['OTLP', 'OTLP_TRACES', 'OTLP_METRICS']) {
    for (const pair of (readEnv(`OTEL_EXPORTER_${name}_HEADERS`) ?? '').split(',')) {
      const value = pair.slice(pair.indexOf('=') + 1).trim()
      for (const part of [value, decoded(value), ...decoded(value).split(/\s+/)]) add(part)
    }
  }
  for (const url of [config.endpoint, ...ENDPOINTS.map(readEnv)]) {
    if (url === undefined || !URL.canParse(url)) continue
    const { username, password, search, searchParams } = new URL(url)
    for (const part of [username, password, search.slice(1), ...searchParams.values()])
      for (const form of [part, decoded(part)]) add(form)
  }
  // The longest first, or a secret that begins with another one would leave its end behind.
  const ordered = [...secrets].sort((a, b) => b.length - a.length)
  return (text) => ordered.reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
}

/** A URL as it may be logged: without credentials, path and query. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'an unreadable URL'
}

const ENDPOINTS = ['OTLP', 'OTLP_TRACES', 'OTLP_METRICS'].map((name) => `OTEL_EXPORTER_${name}_ENDPOINT`)
/** Shorter texts would blank out ordinary words. */
const MIN_SECRET = 4
const MAX_LENGTH = 300

/** Texts and errors only: objects are payloads and settings, which nobody wants in this log. */
function describe(args: readonly unknown[]): string {
  const words = args.map((arg) => {
    if (arg instanceof Error) return summary(arg)
    return typeof arg === 'string' ? readable(arg) : ''
  })
  return words
    .filter((word) => word !== '')
    .join(' ')
    .slice(0, MAX_LENGTH)
}

/** The SDK hands its errors over as one line of JSON. */
function readable(text: string): string {
  if (text.startsWith('{')) {
    try {
      return summary(JSON.parse(text) as object)
    } catch {
      // Not JSON after all.
    }
  }
  return text.split('\n', 1)[0] ?? ''
}

/** Never `data`, the body of the answer: a server may echo what it got. */
function summary(error: { name?: unknown; message?: unknown; code?: unknown }): string {
  const parts = [error.name, error.message, error.code].filter(
    (part) => typeof part === 'string' || typeof part === 'number',
  )
  return parts
    .map((part) => String(part).split('\n', 1)[0])
    .filter(Boolean)
    .join(': ')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A lone percent sign is no encoding.
    return text
  }
}
