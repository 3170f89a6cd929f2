/** What of a row's config may be shown: a report ends up in tickets and chats. */
import { JsExpression, type Row } from './rows.ts'

/** Fields of our own plugins and of the known backends whose text says nothing about anybody. */
const PLAIN_TEXT: ReadonlySet<string> = new Set([
  'root',
  'path',
  'compression',
  'protocol',
  'serviceName',
  'host',
  'subagents',
])
/** The same for lists of texts. */
const PLAIN_LISTS: ReadonlySet<string> = new Set(['hosts', 'tools', 'agents', 'exceptAgents', 'signals'])
const MAX_CHARACTERS = 120

/** The settings of a row on one line, text of unknown fields left out. */
export function showSettings({ config, role }: Row): string {
  if (role === 'retry' || typeof config !== 'object' || config === null || Array.isArray(config)) return ''
  const parts = Object.entries(config).map(([key, value]) => `${key}: ${show(key, value)}`)
  const text = parts.join(', ')
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text
}

function show(key: string, value: unknown): string {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value instanceof JsExpression) return '(expression)'
  if (key === 'endpoint' && typeof value === 'string') return URL.canParse(value) ? new URL(value).origin : '(set)'
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === 'number')) return `${value.length} numbers`
    return PLAIN_LISTS.has(key) ? `[${value.map((item) => String(item)).join(', ')}]` : '(set)'
  }
  return PLAIN_TEXT.has(key) && typeof value === 'string' ? value : '(set)'
}

/** The fields of a config that are known without starting the host. */
export function knownFields(config: unknown): Record<string, unknown> {
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return {}
  return Object.fromEntries(Object.entries(config).filter(([, value]) => !holdsExpression(value)))
}

function holdsExpression(value: unknown): boolean {
  if (value instanceof JsExpression) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsExpression)
}
