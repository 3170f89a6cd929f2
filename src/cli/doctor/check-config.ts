/** Whether the config of each of our rows will be accepted: the plugins' own schemas are asked. */
import { SCOPE_NAME } from '../../semconv.ts'
import type { Finding } from './report.ts'
import type { Row } from './rows.ts'
import { knownFields } from './settings.ts'

interface Checked {
  readonly '~standard': {
    validate(input: unknown): { issues?: readonly { readonly message: string }[] } | Promise<unknown>
  }
}

/** Schemas by the name of the plugin; imported only when a row asks for one. */
const SCHEMAS: Readonly<Record<string, () => Promise<Checked>>> = {
  [SCOPE_NAME]: async () => (await import('../../config.ts')).Config,
  [`${SCOPE_NAME}/prometheus`]: async () => (await import('../../prometheus/config.ts')).Config,
  [`${SCOPE_NAME}/inspector`]: async () => (await import('../../inspector/config.ts')).Config,
  [`${SCOPE_NAME}/node-sdk`]: async () => (await import('../../node-sdk/config.ts')).Config,
  [`${SCOPE_NAME}/strategies/coalesced`]: async () => (await import('../../strategies/coalesced.ts')).default.Config,
  [`${SCOPE_NAME}/strategies/pipelined`]: async () => (await import('../../strategies/pipelined.ts')).default.Config,
  [`${SCOPE_NAME}/strategies/selective`]: async () => (await import('../../strategies/selective.ts')).default.Config,
}

/** One error per field that the host would refuse at its start; fields set by expressions are not known here. */
export async function checkConfigs(rows: readonly Row[]): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const row of rows) {
    if (row.state === 'off' || !row.name.startsWith(SCOPE_NAME)) continue
    const schema = await SCHEMAS[row.name]?.()
    if (schema === undefined) {
      const known = Object.keys(SCHEMAS).join(', ')
      findings.push({
        id: 'config',
        level: 'error',
        message: `the row ${row.id} names ${row.name}, which is no plugin of this package`,
        change: `one of ${known}`,
      })
      continue
    }
    const input =
      row.config === undefined || row.config === null || typeof row.config === 'object'
        ? knownFields(row.config)
        : row.config
    const result = await schema['~standard'].validate(input)
    for (const { message } of (result as { issues?: readonly { message: string }[] }).issues ?? []) {
      // The value is not repeated: a secret may have come into the wrong field.
      findings.push({
        id: 'config',
        level: 'error',
        message: `row ${row.id || row.name}: ${message.replace(/, got .*/s, '')}`,
        change: 'correct that field of its config: the host does not start with it',
      })
    }
  }
  return findings
}
