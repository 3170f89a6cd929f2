/**
 * The process-global OpenTelemetry registry. All copies of the API share one object under a well-known symbol, and each
 * ignores what another version put there, without a word; the API itself cannot tell.
 */

/** Slots of the registry that an SDK fills. */
export type Slot = 'context' | 'diag' | 'metrics' | 'propagation' | 'trace'

const REGISTRY = Symbol.for('opentelemetry.js.api.1')

/** What is registered in this process, by whichever copy of the API; undefined where nothing is. */
export function registry(): ({ readonly version?: string } & Partial<Record<Slot, object>>) | undefined {
  return (globalThis as { [REGISTRY]?: ReturnType<typeof registry> })[REGISTRY]
}
