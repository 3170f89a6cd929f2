/** What a life is told, and what it is examined by. */
import type { Target } from './points.ts'

/** Id of the top-level session. */
export const SESSION = 'victim'

/** What a life is told. */
export interface Plan {
  /** Folder of the session logs. */
  readonly root: string
  /** Folder of what the outside world remembers. */
  readonly side: string
  readonly compression: 'none' | 'zstd'
  readonly policy: object
  /** URL of a policy to mount in place of ours. */
  readonly policyModule?: string
  /** Strategy plugin by module URL; absent: the default. */
  readonly strategy?: { readonly module: string; readonly config: object }
  readonly target?: Target
  /** Go on with the session that an earlier life left behind. */
  readonly resume?: boolean
  /** Fsync answers without doing anything. */
  readonly lyingSync?: boolean
  /** Each fsync takes up to this long, in milliseconds. */
  readonly slowSyncMs?: number
  /** Makes the call ids of this life its own. */
  readonly life: string
}
