/** Rows of a composed configuration: what each one is to the checkpoint policy. */
import { parseDocument } from 'yaml'
import { SCOPE_NAME } from '../../semconv.ts'

/** A `!!js` scalar. It is never evaluated here. */
export class JsExpression {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** What a row is to the policy. */
export type Role =
  | 'stock policy'
  | 'policy'
  | 'strategy'
  | 'backend'
  | 'prometheus'
  | 'node-sdk'
  | 'inspector'
  | 'retry'

/** One row, groups unfolded. */
export interface Row {
  readonly position: number
  readonly id: string
  readonly name: string
  readonly role?: Role
  /** `conditional`: an expression decides when the host starts. */
  readonly state: 'on' | 'off' | 'conditional'
  readonly config: unknown
  readonly from?: string
}

/** An entry as a file has it. */
export interface Entry {
  id?: string
  name?: string
  disabled?: unknown
  group?: unknown
  config?: unknown
  insert?: Entry[]
}

/** Row ids that the bundles use. */
export const STOCK_ROW = 'session-checkpoint-policy'
export const OUR_ROW = 'session-checkpoint-otel'

/**
 * Parse a file of rows or patches, in the host's dialect: JSON scalars and `!!js`.
 * @throws when it is no list; the message holds no content of the file.
 */
export function parseEntries(text: string): Entry[] {
  const document = parseDocument(text, { customTags: [JS_TAG], logLevel: 'silent' })
  const [error] = document.errors
  if (error !== undefined) throw new Error(`it is no YAML (${error.code} in line ${error.linePos?.[0].line ?? '?'})`)
  const value: unknown = document.toJS()
  if (!Array.isArray(value)) throw new Error('it is not a list of rows')
  return value.filter((entry): entry is Entry => typeof entry === 'object' && entry !== null)
}

const JS_TAG = { tag: 'tag:yaml.org,2002:js', resolve: (text: string) => new JsExpression(text) }

/**
 * Unfold entries into rows, in the order in which the host mounts them.
 * @param origins - where each id came from.
 */
export function rowsOf(entries: readonly Entry[], origins: ReadonlyMap<string, string> = new Map()): Row[] {
  const rows: Row[] = []
  const add = (list: readonly Entry[], outer: Row['state']) => {
    for (const entry of list) {
      if (typeof entry.name !== 'string') continue
      const { name, id = '', config } = entry
      const state = outer === 'on' ? stateOf(entry.disabled) : outer
      rows.push({ position: rows.length + 1, id, name, role: roleOf(id, name), state, config, from: origins.get(id) })
      if (Array.isArray(config) && (entry.group !== undefined || name.endsWith('plugin-group')))
        add(config as Entry[], state)
    }
  }
  add(entries, 'on')
  return rows
}

function stateOf(disabled: unknown): Row['state'] {
  if (disabled instanceof JsExpression) return 'conditional'
  return disabled === true ? 'off' : 'on'
}

/** Plugins of others are known by their names only: a service cannot be seen in a file. */
function roleOf(id: string, name: string): Role | undefined {
  if (name === SCOPE_NAME) return 'policy'
  if (name === '@deepseek-ai/dsh-session-checkpoint-policy') return 'stock policy'
  if (name.startsWith(`${SCOPE_NAME}/strategies/`)) return 'strategy'
  if (name === `${SCOPE_NAME}/prometheus`) return 'prometheus'
  if (name === `${SCOPE_NAME}/node-sdk`) return 'node-sdk'
  if (name === `${SCOPE_NAME}/inspector`) return 'inspector'
  if (/session-persistence(-|$)/.test(name) || id.startsWith('session-persistence')) return 'backend'
  if (/checkpoint.*strategy|strategy.*checkpoint/i.test(`${id} ${name}`)) return 'strategy'
  if (name.endsWith('llm-retry')) return 'retry'
  return undefined
}
