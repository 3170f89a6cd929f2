/** The rows that the host would mount: asked of the host's own CLI, or put together from the files. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../command.ts'
import { readTextInput, UnreadableInput } from '../input-file.ts'
import { findCli } from './find-cli.ts'
import type { Finding } from './report.ts'
import { packageFolder, readManifest, type Place } from './place.ts'
import { parseEntries, rowsOf, type Entry, type Row } from './rows.ts'

/** Rows and where they came from. */
export interface Composition {
  readonly source: string
  /** Undefined: nothing says what is mounted. */
  readonly rows?: readonly Row[]
  /** Rows of some bundles are not known: what is not seen may still be there. */
  readonly partial?: boolean
  readonly findings: readonly Finding[]
}

const CLI_LIMIT_MS = 20_000
const PATCH_FILE = 'cordis.patch.yml'
const ROW_FILES = ['cordis.yml', 'cordis.yaml', 'cordis.json']

/**
 * Compose the configuration of a place.
 * @param config - file of rows, for projects whose file has a name of its own.
 * @throws UsageError when that file cannot be read at all.
 */
export function compose(place: Place, config?: string): Composition {
  if (config !== undefined) return fromNamed(config)
  if (place.kind === 'profile') {
    const cli = findCli(place)
    return cli === undefined ? fromFiles(place) : fromCli(place, cli)
  }
  const file = ROW_FILES.map((name) => join(place.folder, name)).find((path) => existsSync(path))
  return file === undefined ? { source: 'no file of rows: plugins are mounted in code', findings: [] } : fromFile(file)
}

function fromCli(place: Place, cli: string): Composition {
  const args = [join(cli, 'lib/bin.js'), '--profile', place.profile ?? '', '--dump-config']
  const env = { ...process.env, DSH_HOME: place.home }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: place.folder,
    env,
    encoding: 'utf8',
    timeout: CLI_LIMIT_MS,
  })
  const source = `dsh ${readManifest(cli)?.version ?? ''} --dump-config`
  const said =
    stderr
      ?.split('\n')
      .filter((line) => line.trim() !== '')
      .slice(0, MAX_SAID) ?? []
  if (status !== 0) {
    // The line of the error alone: what follows quotes the file.
    const reason = /^\w*Error: (.*)$/m.exec(stderr ?? '')?.[1] ?? `it ended with ${String(status)}`
    const message = `dsh cannot compose this profile: ${reason}`
    return {
      source,
      findings: [{ id: 'composition', level: 'error', message, change: `correct ${join(place.folder, PATCH_FILE)}` }],
    }
  }
  const findings = said.map((line): Finding => ({ id: 'composition', level: 'warning', message: `dsh says: ${line}` }))
  return { source, rows: rowsOf(parseEntries(stdout), layersOf(stdout)), findings }
}

const MAX_SAID = 5

/** The dump names the layer above the first row of each run of rows. */
function layersOf(dump: string): Map<string, string> {
  const layers = new Map<string, string>()
  let layer = ''
  for (const line of dump.split('\n')) {
    layer = /^# == (.*)$/.exec(line)?.[1] ?? layer
    const id = /^- id: ['"]?([^'"\s]+)/.exec(line)?.[1]
    if (id !== undefined) layers.set(id, layer)
  }
  return layers
}

/** Bundles in their order, then the patch of the profile, then that of the home. */
function fromFiles(place: Place): Composition {
  const findings: Finding[] = []
  const { layers, unknown } = layersIn(place)
  if (unknown.length > 0) {
    const message = `no dsh was found to ask, and the rows of ${unknown.join(', ')} are not known: what they mount is not seen here`
    const change = `start dsh once with this profile, or put it on the PATH, and call the doctor again`
    findings.push({ id: 'composition', level: 'warning', message, change })
  }
  const entries: Entry[] = []
  const origins = new Map<string, string>()
  for (const { label, file } of layers) {
    const touch = (id: string) => origins.set(id, origins.has(id) ? `${origins.get(id)}, patched by ${label}` : label)
    try {
      for (const patch of parseEntries(readTextInput(file))) {
        if (apply(entries, patch, touch) || unknown.length > 0) continue
        findings.push({
          id: 'composition',
          level: 'warning',
          message: `${file}: a patch of ${JSON.stringify(patch.id)} fits no row and is skipped`,
        })
      }
    } catch (error) {
      findings.push(unreadable(file, error))
    }
  }
  return { source: 'the files of the profile', rows: rowsOf(entries, origins), partial: unknown.length > 0, findings }
}

interface Layer {
  readonly label: string
  readonly file: string
}

function layersIn({ manifest, folder, home = '' }: Place): { readonly layers: Layer[]; readonly unknown: string[] } {
  const layers: Layer[] = []
  const unknown: string[] = []
  for (const bundle of manifest.dsh?.profile?.bundles ?? []) {
    const installed = packageFolder(bundle, folder)
    const patch = installed === undefined ? undefined : readManifest(installed)?.dsh?.bundle?.patch
    if (installed === undefined || patch === undefined) unknown.push(bundle)
    else layers.push({ label: bundle, file: join(installed, patch) })
  }
  for (const file of [join(folder, PATCH_FILE), join(home, PATCH_FILE)]) {
    if (existsSync(file)) layers.push({ label: file, file })
  }
  return { layers, unknown }
}

/** One patch, by the rules of the host; false when it fits nothing. */
function apply(entries: Entry[], { id, insert, name, ...overrides }: Entry, touch: (id: string) => void): boolean {
  const target = id === undefined ? undefined : flat(entries).find((entry) => entry.id === id)
  if (insert !== undefined) {
    if (id !== undefined && target?.group === undefined) return false
    const list = target === undefined ? entries : listIn(target)
    list.push(...insert)
    for (const entry of flat(insert)) if (entry.id !== undefined) touch(entry.id)
    return true
  }
  if (target === undefined || (name !== undefined && name !== target.name)) return false
  Object.assign(target, overrides)
  touch(id ?? '')
  return true
}

function listIn(group: Entry): Entry[] {
  if (!Array.isArray(group.config)) group.config = []
  return group.config as Entry[]
}

function flat(entries: readonly Entry[]): Entry[] {
  return entries.flatMap((entry) => [
    entry,
    ...(entry.group !== undefined && Array.isArray(entry.config) ? flat(entry.config as Entry[]) : []),
  ])
}

/** The caller named it: what is no file at all is a wrong call, what is wrong in it is a finding. */
function fromNamed(config: string): Composition {
  try {
    return fromText(config, readTextInput(config))
  } catch (error) {
    if (!(error instanceof UnreadableInput)) throw error
    if (error.kind === 'absent') throw new UsageError(`--config: there is no file ${config}`)
    throw new UsageError(
      `--config: ${config} ${error.message}${error.kind === 'folder' ? '; name a file of rows' : ''}`,
    )
  }
}

function fromFile(file: string): Composition {
  try {
    return fromText(file, readTextInput(file))
  } catch (error) {
    return { source: file, findings: [unreadable(file, error)] }
  }
}

function fromText(file: string, text: string): Composition {
  try {
    return { source: file, rows: rowsOf(parseEntries(text)), findings: [] }
  } catch (error) {
    return { source: file, findings: [unreadable(file, error)] }
  }
}

function unreadable(file: string, error: unknown): Finding {
  const { code, message } = error as NodeJS.ErrnoException
  const why = error instanceof UnreadableInput ? message : `cannot be read: ${code ?? message}`
  return {
    id: 'composition',
    level: 'error',
    message: `${file} ${why}`,
    change: `correct ${file}`,
  }
}
