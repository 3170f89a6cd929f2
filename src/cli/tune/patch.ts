/** The rows to paste into a profile's cordis.patch.yml. */
import { SCOPE_NAME } from '../../semconv.ts'
import { settingName, type Variant } from '../bench/variants.ts'

/** Rows of the published bundles. A patch replaces the config of a row as a whole, so `root` has to be said again. */
const JSONL_ROW = 'session-persistence-jsonl'
const POLICY_ROW = 'session-checkpoint-otel'
const STRATEGY_ROW = 'checkpoint-strategy'
const SQLITE = '@deepseek-ai/dsh-session-persistence-sqlite'

/**
 * Write the patch that leads from one variant to another; empty where there is nothing to change.
 * @param from - what is used now.
 */
export function patchOf(from: Variant, to: Variant): string {
  const rows = [...strategyRows(from, to), ...backendRows(from, to)]
  if (rows.length === 0) return ''
  return [
    `# ${to.strategy}, ${settingName(to)}: found by \`${SCOPE_NAME} tune\`.`,
    `# Once before: dsh plugin --profile <name> add ${SCOPE_NAME}`,
    ...rows,
    '',
  ].join('\n')
}

function strategyRows(from: Variant, { strategy }: Variant): string[] {
  if (strategy === from.strategy || strategy === 'stock' || strategy === 'default') return []
  const insert = ['- insert:', `    - id: ${STRATEGY_ROW}`, `      name: '${SCOPE_NAME}/strategies/${strategy}'`]
  if (strategy !== 'selective') return insert
  return [
    `- id: ${POLICY_ROW}`,
    '  config:',
    '    allowUnguarded: true',
    ...insert,
    '      config:',
    '        # Exact names or globs; only tools whose loss in a crash is harmless.',
    "        tools: ['<tool>']",
  ]
}

function backendRows(from: Variant, to: Variant): string[] {
  const { encoding, delayMs } = to
  if (encoding === from.encoding && delayMs === from.delayMs) return []
  const delay = `writeBatchMaxDelayMs: ${delayMs}`
  if (encoding === 'sqlite') {
    return [
      `- id: ${JSONL_ROW}`,
      '  disabled: true',
      '- insert:',
      '    - id: session-persistence-sqlite',
      `      name: '${SQLITE}'`,
      '      config:',
      "        path: !!js dshHomePath('sessions.db')",
      `        ${delay}`,
    ]
  }
  const folder = encoding === from.encoding ? 'sessions' : `sessions-${encoding}`
  return [
    `- id: ${JSONL_ROW}`,
    '  config:',
    '    # Your own root, where you have set one.',
    `    root: !!js dshHomePath('${folder}')`,
    `    compression: ${encoding === 'raw' ? 'none' : 'zstd'}`,
    `    ${delay}`,
  ]
}
