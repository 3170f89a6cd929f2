/** The examination: what is mounted, what it would load, and where its writes go. Nothing of the host is started. */
import { SCOPE_VERSION } from '../../semconv.ts'
import { adviceFor } from './advice.ts'
import { checkConfigs } from './check-config.ts'
import { checkDisk, targetOf } from './check-disk.ts'
import { checkPackages } from './check-packages.ts'
import { checkRows, mounted } from './check-rows.ts'
import { compose } from './compose.ts'
import { findCopies } from './packages.ts'
import { findPlace, type PlaceFlags } from './place.ts'
import type { DoctorReport, Finding, ShownRow } from './report.ts'
import type { Row } from './rows.ts'
import { showSettings } from './settings.ts'

/** What to examine. */
export interface DoctorOptions extends PlaceFlags {
  /** File of rows. */
  readonly config?: string
  /** Whether warnings count as failures. */
  readonly strict: boolean
  /** Whether a small file may be written into the folder of the session logs. */
  readonly write: boolean
}

/**
 * Examine one place.
 * @throws UsageError when there is nothing to examine.
 */
export async function examine(options: DoctorOptions): Promise<DoctorReport> {
  const place = findPlace(options)
  const { source, rows, partial = false, findings: said } = compose(place, options.config)
  const copies = findCopies(place, rows)
  const target = targetOf(place, mounted(rows ?? [], 'backend')[0])
  const { findings: durability, disk } = await checkDisk(target, options.write)
  const findings: Finding[] = [
    ...said,
    ...(rows === undefined
      ? []
      : [...checkRows(rows, adviceFor(place, source), partial), ...(await checkConfigs(rows))]),
    ...checkPackages(place, copies, rows, partial),
    ...durability,
  ]
  if (rows === undefined && said.length === 0) findings.unshift(MOUNTED_IN_CODE)
  const failing = options.strict ? ['error', 'warning'] : ['error']
  return {
    ok: !findings.some((finding) => failing.includes(finding.level)),
    version: SCOPE_VERSION,
    node: process.version,
    folder: place.folder,
    profile: place.profile,
    source,
    rows: (rows ?? []).flatMap(shown),
    strategy: rows === undefined ? 'not known' : strategyOf(rows),
    packages: copies,
    disk,
    findings,
  }
}

const MOUNTED_IN_CODE: Finding = {
  id: 'composition',
  level: 'note',
  message:
    'no file says what is mounted: which policy, strategy and backend your code mounts is not seen here; a second policy is said in the log when it starts',
  change: 'if there is a file of rows, name it with --config',
}

function shown(row: Row): ShownRow[] {
  const { position, id, name: plugin, role, state, from } = row
  return role === undefined ? [] : [{ position, id, plugin, role, state, settings: showSettings(row), from }]
}

function strategyOf(rows: readonly Row[]): string {
  const names = mounted(rows, 'strategy').map((row) => row.name)
  return names.length === 0 ? 'default' : names.join(' and ')
}
