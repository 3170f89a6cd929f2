/** The SDK plugin under test: what is registered in this process, and what a receiver got. */
import { expect, vi } from 'vitest'
import type { App } from './app.ts'
import type { OtlpReceiver } from './otlp.ts'

const REGISTRY = Symbol.for('opentelemetry.js.api.1')
const globals = globalThis as Record<symbol, Record<string, unknown> | undefined>

/** Slots of the process-global OpenTelemetry registry that somebody holds. */
export function slots(): string[] {
  const registry = globals[REGISTRY] ?? {}
  return Object.keys(registry)
    .filter((key) => key !== 'version' && registry[key] !== undefined)
    .sort()
}

/** Forget the registry, and with it the version that made it. */
export function forgetRegistry(): void {
  delete globals[REGISTRY]
}

/** Forget what the plugin keeps for the process: what was said is news again. */
export function forgetProcess(): void {
  delete globals[Symbol.for('dsh-checkpoint-otel.node-sdk.1')]
}

/** Configuration for a receiver. Metrics are exported at unload; the interval is out of the way. */
export function configOf(receiver: OtlpReceiver, more: object = {}): object {
  return { endpoint: receiver.endpoint, protocol: 'http/json', metricsIntervalMs: 60_000, ...more }
}

/** One turn without a tool call: step, request and turn barrier, settled when it resolves. */
export async function turn(app: App, id?: string): Promise<void> {
  const settled = app.barriers().length
  const { agent } = await app.createAgent(id)
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(app.barriers()).toHaveLength(settled + BARRIERS.length))
}

/** Spans of {@link turn}. */
export const BARRIERS = ['checkpoint request', 'checkpoint step', 'checkpoint turn']

/** Names of the barrier spans that arrived. */
export function barriersIn(receiver: OtlpReceiver): string[] {
  return receiver.spans
    .map(({ name }) => name)
    .filter((name) => name.startsWith('checkpoint'))
    .sort()
}
