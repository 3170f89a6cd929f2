/** Which copies of the shared packages the mounted plugins would load, found as Node finds them. */
import type { Copy } from './report.ts'
import { packageFolder, packageOf, readManifest, type Manifest, type Place } from './place.ts'
import type { Row } from './rows.ts'
import { SCOPE_NAME } from '../../semconv.ts'

/** The OpenTelemetry API. */
export const API = '@opentelemetry/api'
/** Packages that work as one copy only, and those whose versions have to fit them. */
const WATCHED: ReadonlySet<string> = new Set([
  SCOPE_NAME,
  API,
  '@opentelemetry/sdk-node',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/sdk-metrics',
  '@deepseek-ai/cordis',
  'cordis',
  ...['agent', 'llm', 'session', 'session-persistence', 'tools'].map((name) => `@deepseek-ai/dsh-${name}`),
])
/** Larger trees than any host has; beyond it something is wrong with the tree. */
const MAX_PACKAGES = 5_000
const MAX_NAMED = 3
const SDK = /^@opentelemetry\/(sdk-|auto-instrumentations)/

type OpenCopy = { -readonly [K in keyof Copy]: Copy[K] } & { readonly neededBy: string[] }

/** One import that starts the walk. */
interface Import {
  readonly name: string
  readonly from: string
  readonly by: string
}

/**
 * Walk from the mounted plugins, or from the dependencies of a project, to everything they can load.
 * @param rows - rows of the configuration, where they are known.
 */
export function findCopies(place: Place, rows: readonly Row[] | undefined): Copy[] {
  const found = new Map<string, OpenCopy>()
  const by = startOf(place)
  const visited = new Set<string>()
  const queue: Import[] = startsOf(place, rows)
  for (let next = queue.pop(); next !== undefined && visited.size < MAX_PACKAGES; next = queue.pop()) {
    const folder = packageFolder(next.name, next.from)
    if (folder === undefined) continue
    const manifest = readManifest(folder) ?? {}
    if (WATCHED.has(next.name)) {
      const copy = found.get(folder) ?? newCopy(next.name, folder, manifest)
      found.set(folder, copy)
      const { neededBy } = copy
      if (neededBy.length < MAX_NAMED && !neededBy.includes(next.by)) neededBy.push(next.by)
      // Whoever runs an SDK registers it through the copy that it loads.
      copy.isRegistering ||= next.by === by || SDK.test(next.name === API ? next.by : '')
    }
    if (visited.has(folder)) continue
    visited.add(folder)
    const parent = `${next.name} ${manifest.version ?? ''}`.trim()
    for (const name of importsOf(manifest)) queue.push({ name, from: folder, by: parent })
  }
  return [...found.values()].toSorted((a, b) => compareText(a.name, b.name) || compareText(a.folder, b.folder))
}

function startOf({ kind, manifest }: Place): string {
  return kind === 'profile' ? 'the profile' : (manifest.name ?? 'the project')
}

function startsOf(place: Place, rows: readonly Row[] | undefined): Import[] {
  const { folder, manifest, kind } = place
  const mounted = (rows ?? []).filter((row) => row.state !== 'off').map((row) => packageOf(row.name))
  const own =
    kind === 'project'
      ? [...importsOf(manifest), ...Object.keys(manifest.devDependencies ?? {})]
      : Object.keys(manifest.dependencies ?? {})
  const by = startOf(place)
  return [...new Set([...mounted, ...own])]
    .filter((name) => name !== undefined)
    .map((name) => ({ name, from: folder, by }))
}

function importsOf({ dependencies, optionalDependencies, peerDependencies }: Manifest): string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
}

/** An alias is listed under the name that plugins import, with the version of what is there. */
function newCopy(name: string, folder: string, { version = 'unknown' }: Manifest): OpenCopy {
  return { name, version, folder, neededBy: [], isRegistering: false }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
