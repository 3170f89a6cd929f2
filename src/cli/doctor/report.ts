/** What the doctor hands back: plain data, the same for people and for scripts. */

/** `error`: the guarantees or the telemetry do not hold. `warning`: they may not. `note`: good to know. */
export type Level = 'ok' | 'note' | 'warning' | 'error'

/** One thing that was looked at. */
export interface Finding {
  /** Stable name for scripts. */
  readonly id: string
  readonly level: Level
  /** What was found, as a sentence. */
  readonly message: string
  /** What to do about it: lines to copy where there are some. */
  readonly change?: string
}

/** A row of the composed configuration that matters here. */
export interface ShownRow {
  /** Place among all rows, from 1. */
  readonly position: number
  readonly id: string
  readonly plugin: string
  readonly role: string
  readonly state: 'on' | 'off' | 'conditional'
  /** Settings that cannot be secret; the values of all others are left out. */
  readonly settings: string
  /** The bundle or file that it came from, where known. */
  readonly from?: string
}

/** One copy of a package that the mounted plugins would load. */
export interface Copy {
  readonly name: string
  readonly version: string
  readonly folder: string
  /** Some of the packages that load it, by name and version. */
  readonly neededBy: readonly string[]
  /** Whether the project itself or an SDK loads it: of the OpenTelemetry API, this copy gets the providers. */
  readonly isRegistering: boolean
}

/** What a write into the folder of the session logs took. */
export interface DiskReport {
  readonly folder: string
  /** Whether it is the backend's own folder. */
  readonly isBackend: boolean
  readonly fileSystem: string
  readonly appends: number
  readonly medianMs: number
  readonly slowestMs: number
}

/** The whole answer. */
export interface DoctorReport {
  /** No error; with `--strict` no warning either. */
  readonly ok: boolean
  readonly version: string
  readonly node: string
  readonly folder: string
  readonly profile?: string
  /** Where the rows were read. */
  readonly source: string
  readonly rows: readonly ShownRow[]
  readonly strategy: string
  readonly packages: readonly Copy[]
  readonly disk?: DiskReport
  readonly findings: readonly Finding[]
}
