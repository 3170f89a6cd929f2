/**
 * The process-global OpenTelemetry registry: who owns what, and giving back exactly what was taken.
 *
 * All copies of the API share one object under a well-known symbol. It is read here because the API itself cannot tell an
 * empty slot from one that somebody filled, and answers nothing at all when another version made the object.
 */
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { context, diag, metrics, propagation, trace } from '@opentelemetry/api'
import { registry, type Slot } from '../telemetry/registry.ts'
import { PLUGIN } from './config.ts'
import { processState } from './process.ts'

/** Who holds a slot now, by identity. */
export function holderOf(slot: Slot): object | undefined {
  return registry()?.[slot]
}

/** Whether another mount of this plugin holds a slot. */
export function isOwn(slot: Slot): boolean {
  const holder = holderOf(slot)
  return holder !== undefined && processState().own.has(holder)
}

/** Name of whoever holds a slot, for people. */
export function ownerName(slot: Slot): string {
  if (isOwn(slot)) return `another mount of ${PLUGIN}`
  const holder: { getDelegate?: () => object } | undefined = holderOf(slot)
  const provider = holder?.getDelegate?.() ?? holder
  return `${provider?.constructor?.name ?? 'an unknown provider'} of another SDK in this process`
}

/** Version of the API that made the registry, where one exists. */
export function registryVersion(): string | undefined {
  return registry()?.version
}

/** Version of the API this package got from its host; undefined when it cannot be told. */
export function apiVersion(): string | undefined {
  try {
    let folder = dirname(entryPoint())
    for (let level = 0; level < MAX_LEVELS; level += 1, folder = dirname(folder)) {
      const version = versionIn(join(folder, 'package.json'))
      if (version !== undefined) return version
    }
  } catch {
    // A bundle has no folders to look into; importing the SDK will tell whether it works.
  }
  return undefined
}

/** What one start put into the registry. */
export class Registration {
  readonly #held = new Map<Slot, object>()

  /** Run `register` and remember which slots it filled. */
  take(register: () => void): void {
    const before = new Map(SLOTS.map((slot) => [slot, holderOf(slot)]))
    try {
      register()
    } finally {
      for (const slot of SLOTS) {
        const holder = holderOf(slot)
        if (holder === undefined || holder === before.get(slot)) continue
        this.#held.set(slot, holder)
        processState().own.add(holder)
      }
    }
  }

  /** Empty the slots that still hold what was put there; the others belong to somebody else by now. */
  release(...slots: readonly Slot[]): void {
    for (const slot of slots.length > 0 ? slots : SLOTS) {
      const holder = this.#held.get(slot)
      this.#held.delete(slot)
      if (holder !== undefined && holderOf(slot) === holder) empty(slot)
    }
  }
}

const API = '@opentelemetry/api'
/** Folders above the entry point of a package that may hold its manifest. */
const MAX_LEVELS = 6
const SLOTS: readonly Slot[] = ['trace', 'metrics', 'propagation', 'context', 'diag']

/** As `import` finds it; test runners and bundlers may lack the function. */
function entryPoint(): string {
  if (typeof import.meta.resolve === 'function') return fileURLToPath(import.meta.resolve(API))
  return createRequire(import.meta.url).resolve(API)
}

function empty(slot: Slot): void {
  switch (slot) {
    case 'context':
      context.disable()
      break
    case 'diag':
      diag.disable()
      break
    case 'metrics':
      metrics.disable()
      break
    case 'propagation':
      propagation.disable()
      break
    case 'trace':
      trace.disable()
      break
  }
}

function versionIn(file: string): string | undefined {
  try {
    const { name, version } = JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string }
    return name === API ? version : undefined
  } catch {
    // Not every folder has a manifest.
    return undefined
  }
}
