/** Where the doctor was called: a profile of dsh, or a project that mounts the harness itself. */
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { UsageError } from '../command.ts'
import { readTextInput } from '../input-file.ts'

/** The folder to look at. */
export interface Place {
  readonly kind: 'profile' | 'project'
  readonly folder: string
  /** Name of the profile. */
  readonly profile?: string
  /** The home that the profile belongs to. */
  readonly home?: string
  readonly manifest: Manifest
}

/** What is read of a package.json. */
export interface Manifest {
  readonly name?: string
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly dsh?: {
    readonly profile?: { readonly bundles?: readonly string[] }
    readonly bundle?: { readonly patch?: string }
  }
}

/** How the caller named it. */
export interface PlaceFlags {
  readonly dir?: string
  readonly home?: string
  readonly profile?: string
}

/**
 * Find it.
 * @throws UsageError when there is neither a profile nor a project; nothing is ever created.
 */
export function findPlace({ dir, home, profile }: PlaceFlags): Place {
  if (profile !== undefined) {
    const root = homeOf(home)
    const folder = join(root, 'profiles', profile)
    const manifest = readManifest(folder)
    if (manifest === undefined) {
      throw new UsageError(
        `there is no profile ${JSON.stringify(profile)} below ${root}; name the home with --home, or create the profile with dsh`,
      )
    }
    return { kind: 'profile', folder, profile, home: root, manifest }
  }
  const folder = resolve(dir ?? '.')
  const manifest = readManifest(folder)
  if (manifest === undefined) {
    throw new UsageError(
      `${folder} has no package.json: call it inside a dsh profile or a project, or name one with --profile or --dir`,
    )
  }
  if (manifest.dsh?.profile === undefined) return { kind: 'project', folder, manifest }
  const isInHome = basename(dirname(folder)) === 'profiles'
  return {
    kind: 'profile',
    folder,
    profile: basename(folder),
    home: isInHome ? dirname(dirname(folder)) : homeOf(home),
    manifest,
  }
}

/** The home as dsh finds it: named, else DSH_HOME, else below the user's. */
function homeOf(named: string | undefined): string {
  const chosen = named ?? process.env['DSH_HOME']?.trim()
  if (chosen === undefined || chosen === '') return join(homedir(), '.dsh')
  return resolve(chosen.replace(/^~(?=$|\/)/, homedir()))
}

/** The package.json of a folder; undefined when there is none that can be read. */
export function readManifest(folder: string): Manifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readTextInput(join(folder, 'package.json')))
    return typeof manifest === 'object' && manifest !== null ? manifest : undefined
  } catch {
    // Absent, unreadable or no JSON: the caller says what it needed.
    return undefined
  }
}

/**
 * Where Node finds a package.
 * @param from - folder of whoever imports it.
 * @returns its folder without symbolic links, or undefined.
 */
export function packageFolder(name: string, from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return realpathSync(candidate)
    if (dirname(folder) === folder) return undefined
  }
}

/** The package of an import: its name without a subpath; undefined for files and URLs. */
export function packageOf(specifier: string): string | undefined {
  return /^(?![.\w]+:)((?:@[\w.~-]+\/)?[\w~-][\w.~-]*)(?:\/|$)/.exec(specifier)?.[1]
}
