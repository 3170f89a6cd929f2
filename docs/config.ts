/** Write the reference of every plugin's configuration from the schemas that the plugins check it with: `npm run docs`. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { Config as policy } from '../src/config.ts'
import { Config as inspector } from '../src/inspector/config.ts'
import { Config as nodeSdk } from '../src/node-sdk/config.ts'
import { Config as prometheus } from '../src/prometheus/config.ts'
import { SCOPE_NAME } from '../src/semconv.ts'
import coalesced from '../src/strategies/coalesced.ts'
import pipelined from '../src/strategies/pipelined.ts'
import selective from '../src/strategies/selective.ts'

/** One plugin of the reference. */
export interface DocumentedPlugin {
  /** What a row's `name` says. */
  readonly name: string
  /** Row id of the examples. */
  readonly id: string
  readonly summary: string
  readonly schema: Schema
  /** A config that somebody would write. */
  readonly example: Readonly<Record<string, unknown>>
  /** What the policy's config needs for it. */
  readonly policy?: Readonly<Record<string, unknown>>
}

/** What is read of a schema. */
interface Schema {
  readonly type: string
  readonly meta: {
    readonly default?: unknown
    readonly description?: string | Readonly<Record<string, string>>
    readonly role?: string
    readonly step?: number
  }
  readonly dict?: Readonly<Record<string, Schema>>
  readonly inner?: Schema
  readonly list?: readonly Schema[]
  readonly value?: unknown
  readonly '~standard': { validate(input: unknown): unknown }
}

/** Every plugin that has a configuration. */
export const PLUGINS: readonly DocumentedPlugin[] = [
  {
    name: SCOPE_NAME,
    id: 'session-checkpoint-otel',
    summary:
      'The checkpoint policy. Its bundle patch mounts it in place of the stock policy; zero config gives the same guarantees.',
    schema: policy,
    example: { timeoutMs: 10_000 },
  },
  {
    name: `${SCOPE_NAME}/prometheus`,
    id: 'checkpoint-prometheus',
    summary: 'A scrape endpoint, fed by the policy, without any OpenTelemetry SDK.',
    schema: prometheus,
    example: { port: 9464 },
  },
  {
    name: `${SCOPE_NAME}/node-sdk`,
    id: 'checkpoint-node-sdk',
    summary:
      'The OpenTelemetry SDK inside the app: traces and metrics over OTLP. A field that is left out is decided by its OTEL_* variable.',
    schema: nodeSdk,
    example: { endpoint: 'http://127.0.0.1:4318', serviceName: 'my-agent' },
  },
  {
    name: `${SCOPE_NAME}/inspector`,
    id: 'checkpoint-inspector',
    summary: 'A live page of the barriers on loopback.',
    schema: inspector,
    example: { port: 9465 },
  },
  {
    name: `${SCOPE_NAME}/strategies/coalesced`,
    id: 'checkpoint-strategy',
    summary:
      'Fewer writes, the same safety: `step` is left to the `request` that follows, parallel calls share a flush.',
    schema: coalesced.Config,
    example: { exceptAgents: ['release-*'] },
  },
  {
    name: `${SCOPE_NAME}/strategies/pipelined`,
    id: 'checkpoint-strategy',
    summary:
      'The write of a step starts at once and overlaps what precedes the next request; parallel calls share a flush.',
    schema: pipelined.Config,
    example: { groupDelayMs: 20 },
  },
  {
    name: `${SCOPE_NAME}/strategies/selective`,
    id: 'checkpoint-strategy',
    summary: 'Tools that you name do not wait. It does not load unless the policy says `allowUnguarded: true`.',
    schema: selective.Config,
    example: { tools: ['read', 'grep'] },
    policy: { allowUnguarded: true },
  },
]

/** The whole file. */
export function configReference(): string {
  return [INTRODUCTION, ...PLUGINS.map(section)].join('\n\n') + '\n'
}

const INTRODUCTION = `# Configuration

<!-- Generated from the schemas by \`npm run docs\`: do not edit. -->

Every field may be left out, but for the tools of the selective strategy. An unknown field or a wrong value is refused
when the plugin is loaded, with a sentence that names the plugin, the field and the rule below; the host does not start
with it. Secrets are not shown in it.

In a dsh profile the rows below go into \`cordis.patch.yml\` of the profile, as shown: the policy's own row is there
already (the bundle of this package inserts it), every other row is inserted. A patch **replaces** the whole \`config\`
of the row that it names, so write all fields you want. In a project that has its own \`cordis.yml\`, write the same
rows there without \`insert\`. In code: \`ctx.plugin(plugin, config)\`.

Mount at most one strategy. \`npx ${SCOPE_NAME} doctor\` checks the rows of a profile against this page.`

function section(plugin: DocumentedPlugin): string {
  const { name, summary, schema } = plugin
  const head = '| field | type | default | must be | meaning |\n|---|---|---|---|---|'
  const rows = Object.entries(schema.dict ?? {}).map(
    ([field, part]) =>
      `| ${[`\`${field}\``, typeOf(part), defaultOf(part), ruleOf(plugin, field), meaningOf(part)].map(cell).join(' | ')} |`,
  )
  return [`## \`${name}\``, summary, '```yaml\n' + patchFor(plugin) + '```', [head, ...rows].join('\n')].join('\n\n')
}

/** The lines of a profile's patch that mount the plugin with its example. */
export function patchFor({ name, id, example, policy: needed }: DocumentedPlugin): string {
  const [own] = PLUGINS
  const rows: object[] = needed === undefined || own === undefined ? [] : [{ id: own.id, config: needed }]
  rows.push(name === SCOPE_NAME ? { id, config: example } : { insert: [{ id, name, config: example }] })
  return stringify(rows)
}

function meaningOf({ meta }: Schema): string {
  // A description may come in several languages; ours do not.
  return typeof meta.description === 'string' ? meta.description : ''
}

function typeOf({ type, inner, list, meta }: Schema): string {
  if (meta.role === 'secret') return 'text (secret)'
  if (type === 'array') return `list of ${inner === undefined ? 'values' : plural(typeOf(inner))}`
  if (type === 'dict') return `map of ${inner === undefined ? 'values' : typeOf(inner).replace('text', 'texts')}`
  if (type === 'union') return (list ?? []).map(({ value }) => `\`${JSON.stringify(value)}\``).join(' or ')
  return type === 'string' ? 'text' : type
}

function plural(type: string): string {
  return type.includes('`') ? type : `${type}s`
}

function defaultOf({ meta }: Schema): string {
  if (meta.default === undefined) return 'none'
  const text = JSON.stringify(meta.default)
  return `\`${text.replaceAll(',', ', ')}\``
}

/** The rule as the plugin itself says it: a value that is nothing at all is refused with it. */
function ruleOf({ schema, name }: DocumentedPlugin, field: string): string {
  const { issues } = schema['~standard'].validate({ [field]: NOTHING }) as {
    issues?: readonly { readonly message: string }[]
  }
  const rule = issues
    ?.map(({ message }) => /\bmust be (.*?)(?:, got .*)?$/s.exec(message)?.[1])
    .find((text) => text !== undefined)
  if (rule === undefined) throw new Error(`${name} has no rule in words for ${field}`)
  return rule
}

const NOTHING = Symbol('nothing')

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ')
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('config.md', import.meta.url), configReference())
