/** What passes between a test and the agent process that it damages the disk of. */
import type { CheckpointState, OpenBarrier, SettledBarrier } from '../../src/index.ts'

/** How the process is put together. */
export interface RemotePlan {
  readonly root: string
  readonly compression: 'none' | 'zstd'
  readonly policy: object
  readonly strategy?: { readonly module: string; readonly config: object }
  /** User to become once everything is loaded: root may do what others may not. */
  readonly uid?: number
  readonly resume?: boolean
}

/** An order. `turn` runs a whole turn, `begin` starts one, and `pause` as an answer holds the model until `proceed`. */
export type Order =
  | { readonly kind: 'turn' | 'begin'; readonly answers: readonly Answer[] }
  | { readonly kind: 'proceed' | 'abort' | 'settled' | 'look' | 'dispose' | 'unload' }

/** One answer of the model: text or calls, perhaps after a pause. */
export interface Answer {
  readonly pause?: boolean
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly id: string }[]
}

/** What the process saw since the last report. */
export interface Sight {
  /** How the last turn ended: `completed`, `error`, `aborted`; absent while it runs. */
  readonly turn?: string
  /** Ids of the bodies that ran. */
  readonly bodies: string[]
  /** Requests that reached the adapter, each as the text that the model sees. */
  readonly requests: string[]
  /** Results in the transcript, by call id: `ok`, or the text of the error. */
  readonly results: Record<string, string>
  readonly barriers: SettledBarrier[]
  /** What the operator reads. */
  readonly logs: string[]
  readonly state: CheckpointState
  readonly open: readonly OpenBarrier[]
  /** Events of the live session. */
  readonly events: number
}
