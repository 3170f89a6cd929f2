/** Configuration of the policy, and how every plugin of this package checks its own. */
import z from '@deepseek-ai/schemastery'
import { DURATION_BUCKETS_SECONDS, SCOPE_NAME } from './semconv.ts'
import { MAX_TIMER_MS } from './strategy.ts'

/** Configuration of the checkpoint policy. Every field may be left out: the stock policy's guarantees then hold. */
export interface Config {
  /** Longest wait at one barrier, in milliseconds; then it is rejected. Absent: no limit. */
  timeoutMs?: number
  /** Start a write when a turn ends, without waiting for it. */
  turnBoundary?: boolean
  /** Let a strategy release a request or a tool call whose log is not durable. Each such release is counted. */
  allowUnguarded?: boolean
  /** Reject a barrier whose flush resolved although no persistence backend took part. */
  requireConfirmed?: boolean
  /** Age at which an open barrier is named in the log, in milliseconds. */
  overdueMs?: number
  /** Bounds of the duration histograms, in seconds, ascending; for OpenTelemetry and prom-client alike. */
  durationBucketsSeconds?: number[]
}

/** A configuration with its defaults filled in. `Open` names the fields that have none. */
export type Resolved<T, Open extends keyof T = never> = Required<Omit<T, Open>> & Pick<T, Open>

/** {@link Config} with its defaults filled in. */
export type ResolvedConfig = Resolved<Config, 'timeoutMs'>

/** Schema of {@link Config}; the only place where defaults live. */
export const Config: z<Config, ResolvedConfig> = checked<Config, ResolvedConfig>(
  SCOPE_NAME,
  z.object({
    timeoutMs: z
      .number()
      .min(1)
      .max(MAX_TIMER_MS)
      .description('Longest wait at one barrier, in milliseconds. Empty: no limit.'),
    turnBoundary: z.boolean().default(true).description('Start a write when a turn ends, without waiting for it.'),
    allowUnguarded: z
      .boolean()
      .default(false)
      .description('Let a strategy release requests and tool calls whose log is not durable.'),
    requireConfirmed: z
      .boolean()
      .default(false)
      .description('Reject a barrier when no persistence backend took part in its flush.'),
    overdueMs: z
      .number()
      .min(1)
      .max(MAX_TIMER_MS)
      .default(5_000)
      .description('Age at which an open barrier is named in the log, in milliseconds.'),
    durationBucketsSeconds: z
      .array(z.number())
      .default([...DURATION_BUCKETS_SECONDS])
      .description('Bounds of the duration histograms, in seconds, ascending.'),
  }) as unknown as z<Config, ResolvedConfig>,
  {
    timeoutMs: `a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
    turnBoundary: 'true or false',
    allowUnguarded: 'true or false',
    requireConfirmed: 'true or false',
    overdueMs: `a number of milliseconds from 1 to ${MAX_TIMER_MS}`,
    durationBucketsSeconds: 'a list of 1 to 64 positive numbers in ascending order',
  },
  { durationBucketsSeconds: isBucketList },
)

/**
 * Make a schema speak to people: one sentence that names the plugin, the field and the rule, and no unknown field.
 * @param plugin - name the sentence begins with.
 * @param schema - a schemastery object schema.
 * @param rules - what each field must be, in words; also the list of known fields.
 * @param checks - conditions beyond what the schema can say.
 */
export function checked<T extends object, R = T>(
  plugin: string,
  schema: z<T, R>,
  rules: Readonly<Record<keyof T, string>>,
  checks: { readonly [K in keyof T]?: (value: NonNullable<T[K]>) => boolean } = {},
): z<T, R> {
  const fields = Object.keys(rules) as (keyof T & string)[]
  const validate = (input: unknown) => {
    const issues: { message: string }[] = []
    if (input !== undefined && input !== null && (typeof input !== 'object' || Array.isArray(input))) {
      return { issues: [{ message: `${plugin}: config must be an object, got ${show(input)}` }] }
    }
    const given = (input ?? {}) as Record<string, unknown>
    for (const key of Object.keys(given)) {
      if (!fields.includes(key as keyof T & string)) {
        issues.push({ message: `${plugin}: ${key} is not a field; the fields are ${fields.join(', ')}` })
      }
    }
    for (const field of fields) {
      const value = given[field]
      if (value === undefined || value === null) continue
      if (!accepts(field, value))
        issues.push({ message: `${plugin}: ${field} must be ${rules[field]}, got ${show(value)}` })
    }
    return issues.length > 0 ? { issues } : { value: new schema(given as never) }
  }
  const accepts = (field: keyof T & string, value: unknown): boolean => {
    // NaN passes every comparison that a schema makes with it.
    if (typeof value === 'number' && !Number.isFinite(value)) return false
    try {
      new schema({ [field]: value } as never)
    } catch {
      // The schema's own sentence names neither the plugin nor the rule; ours does.
      return false
    }
    return checks[field]?.(value as never) ?? true
  }
  Object.defineProperty(schema, '~standard', { value: { version: 1, vendor: plugin, validate } })
  return schema
}

/**
 * Check and complete a configuration, as the host does before it calls `apply`; a plugin does it again for those who call
 * `apply` themselves.
 * @param schema - a {@link checked} schema.
 * @param config - what the plugin was given.
 * @throws TypeError with one sentence for each mistake.
 */
export function resolve<T, R>(schema: z<T, R>, config: T | undefined): R {
  const standard = schema['~standard'] as { validate(input: unknown): unknown }
  const result = standard.validate(config) as { readonly value: R; readonly issues?: readonly { message: string }[] }
  if (result.issues !== undefined) throw new TypeError(result.issues.map(({ message }) => message).join('\n'))
  return result.value
}

function isBucketList(list: readonly number[]): boolean {
  return (
    list.length >= 1 &&
    list.length <= 64 &&
    list.every((bound, index) => Number.isFinite(bound) && bound > (list[index - 1] ?? 0))
  )
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value))
}
