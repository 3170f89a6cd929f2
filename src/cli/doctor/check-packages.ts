/** What the copies of the shared packages say: missing, too old, doubled, or of a release nobody ran this on. */
import { SCOPE_NAME, SCOPE_VERSION } from '../../semconv.ts'
import type { Copy, Finding } from './report.ts'
import { API } from './packages.ts'
import { packageFolder, packageOf, readManifest, type Place } from './place.ts'
import type { Row } from './rows.ts'
import { mounted } from './check-rows.ts'

/** Session cores that the compatibility suite runs on. */
export const TESTED_HOSTS: readonly string[] = ['0.1.0-rc.6', '0.1.0-rc.8', '0.1.1-rc.2']
const MIN_API_MINOR = 9
const SDK_API_MINOR = 10
const CORDIS = ['@deepseek-ai/cordis', 'cordis']

/**
 * Judge the copies.
 * @param rows - the mounted rows, where they are known.
 * @param partial - whether the host's own packages may be somewhere else.
 */
export function checkPackages(
  place: Place,
  copies: readonly Copy[],
  rows: readonly Row[] = [],
  partial = false,
): Finding[] {
  const missing = partial ? [] : [...checkImports(place, rows)]
  const own = place.manifest.name === SCOPE_NAME ? place.folder : packageFolder(SCOPE_NAME, place.folder)
  if (own === undefined) {
    const change =
      place.kind === 'profile'
        ? `dsh plugin --profile ${place.profile ?? ''} add ${SCOPE_NAME}`
        : `npm install ${SCOPE_NAME}`
    return [...missing, { id: 'package', level: 'error', message: `${SCOPE_NAME} is not installed here`, change }]
  }
  const usesSdk = mounted(rows, 'node-sdk').length > 0
  return [
    ...missing,
    ...checkOwn(own),
    ...checkApi(own, copies, usesSdk),
    ...(partial ? [] : checkCordis(copies)),
    ...checkHost(copies),
  ]
}

/** A row whose package is gone stops the whole host. */
function* checkImports({ folder, manifest }: Place, rows: readonly Row[]): Generator<Finding> {
  for (const row of rows) {
    const name = packageOf(row.name)
    if (
      row.state !== 'on' ||
      row.role === undefined ||
      name === undefined ||
      name === manifest.name ||
      packageFolder(name, folder) !== undefined
    )
      continue
    const message = `the row ${row.id || row.name} needs ${name}, which is not installed here: the host does not start`
    yield {
      id: 'row-package',
      level: 'error',
      message,
      change: `install ${name}, or take the row out${row.from === undefined ? '' : ` of ${row.from}`}`,
    }
  }
}

function* checkOwn(folder: string): Generator<Finding> {
  const version = readManifest(folder)?.version ?? 'unknown'
  if (version === SCOPE_VERSION) yield { id: 'package', level: 'ok', message: `${SCOPE_NAME} ${version} is installed` }
  else {
    const message = `${SCOPE_NAME} ${version} is installed, and this doctor is ${SCOPE_VERSION}: it may look for what that release does not have`
    yield { id: 'package', level: 'note', message, change: `npx ${SCOPE_NAME}@${version} doctor` }
  }
}

function* checkApi(own: string, copies: readonly Copy[], usesSdk: boolean): Generator<Finding> {
  const folder = packageFolder(API, own)
  const version = folder === undefined ? undefined : readManifest(folder)?.version
  if (version === undefined) {
    yield {
      id: 'api',
      level: 'error',
      message: `${API} is not found by ${SCOPE_NAME}: it does not load`,
      change: `npm install ${API}@1`,
    }
    return
  }
  const minor = minorOf(version)
  if (!version.startsWith('1.') || minor < MIN_API_MINOR) {
    yield {
      id: 'api',
      level: 'error',
      message: `${API} ${version} is too old: 1.${MIN_API_MINOR} or a later 1.x is needed`,
      change: `npm install ${API}@1`,
    }
  } else if (usesSdk && minor < SDK_API_MINOR) {
    const message = `${API} is ${version}, and the node-sdk row needs 1.${SDK_API_MINOR}: it exports nothing`
    yield {
      id: 'api',
      level: 'warning',
      message,
      change: `npm install ${API}@1.${SDK_API_MINOR}, or mount ${SCOPE_NAME}/prometheus, which needs no SDK`,
    }
  } else yield { id: 'api', level: 'ok', message: `${SCOPE_NAME} loads ${API} ${version}` }

  for (const copy of copies) if (copy.name === API && copy.folder !== folder) yield judgeCopy(copy, version, usesSdk)
}

/** Copies share one registry of the process. It has the version of whoever registers first; a newer reader finds nothing in it. */
function judgeCopy({ version, neededBy, isRegistering }: Copy, ours: string, usesSdk: boolean): Finding {
  const other = `another copy of ${API}, ${version}, is loaded by ${neededBy.join(', ')}`
  if (version === ours)
    return { id: 'api-copies', level: 'note', message: `${other}; of one version they share their state` }
  if (!isRegistering || !(minorOf(ours) > minorOf(version) || usesSdk)) {
    return {
      id: 'api-copies',
      level: 'note',
      message: `${other}; that is harmless as long as no SDK registers through it`,
    }
  }
  const message = `${other}, and ${SCOPE_NAME} loads ${ours}: spans and metrics are lost without a word when an SDK registers through the other one`
  const change = `one version for all, in package.json (with pnpm below "pnpm"):\n"overrides": { "${API}": "${newest([ours, version])}" }`
  return { id: 'api-copies', level: 'warning', message, change }
}

function* checkCordis(copies: readonly Copy[]): Generator<Finding> {
  const found = copies.filter((copy) => CORDIS.includes(copy.name))
  const [first] = found
  if (first === undefined)
    yield {
      id: 'cordis',
      level: 'warning',
      message: 'no Cordis is found: there is no host here',
      change: 'npm install @deepseek-ai/cordis and the harness packages',
    }
  else if (found.length === 1)
    yield { id: 'cordis', level: 'ok', message: `one Cordis: ${first.name} ${first.version}` }
  else {
    const list = found.map((copy) => `${copy.name} ${copy.version} (for ${copy.neededBy.join(', ')})`).join('; ')
    const message = `${found.length} copies of Cordis: ${list}. Services of one are not seen by plugins of the other`
    yield {
      id: 'cordis',
      level: 'warning',
      message,
      change: 'one version for all: npm "overrides" or pnpm "overrides"',
    }
  }
}

function* checkHost(copies: readonly Copy[]): Generator<Finding> {
  for (const name of new Set(copies.map((copy) => copy.name))) {
    const same = copies.filter((copy) => copy.name === name)
    if (!name.startsWith('@deepseek-ai/dsh-') || same.length === 1) continue
    const message = `${same.length} copies of ${name}: ${same.map((copy) => `${copy.version} (for ${copy.neededBy.join(', ')})`).join('; ')}`
    yield {
      id: 'host-copies',
      level: 'warning',
      message,
      change: 'one version for all: npm "overrides" or pnpm "overrides"',
    }
  }
  const version = copies.find((copy) => copy.name === '@deepseek-ai/dsh-session')?.version
  if (version === undefined) return
  if (TESTED_HOSTS.includes(version))
    yield { id: 'host', level: 'ok', message: `the harness core is ${version}, which this package was run on` }
  else
    yield {
      id: 'host',
      level: 'note',
      message: `the harness core is ${version}: this package was run on ${TESTED_HOSTS.join(', ')} and not on it`,
    }
}

function minorOf(version: string): number {
  return Number(version.split('.')[1])
}

function newest(versions: readonly string[]): string {
  return versions.toSorted((a, b) => minorOf(b) - minorOf(a))[0] ?? ''
}
