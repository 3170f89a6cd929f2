/** A harness in a folder of its own, and the faults the tests inject: a held and a failing flush. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '@deepseek-ai/cordis'
import type { Session } from '@deepseek-ai/dsh-session'
import { onTestFinished } from 'vitest'
import type { CheckpointRecord, SettledBarrier } from '../../src/index.ts'
import * as policy from '../../src/index.ts'
import { createHarness, type Harness, type HarnessOptions } from '../../src/testing/harness.ts'

/** A folder that is removed with the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-checkpoint-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A harness with records, logs and flush faults at hand. */
export interface App extends Harness {
  readonly root: string
  readonly records: CheckpointRecord[]
  readonly barriers: () => SettledBarrier[]
  /** Lines of every level, from before the first plugin on. */
  readonly logs: string[]
  readonly flushes: FlushControl
}

/** What the `session/flush` listener of the tests does. It runs beside the real backend's. */
export interface FlushControl {
  /** Flushes seen. */
  count: number
  /** Called in each flush; what it returns is awaited. */
  on: ((session: Session) => unknown) | undefined
}

/** Start a harness with the policy mounted (or what `plugins` says). */
export async function createApp(options: Partial<HarnessOptions> & { readonly config?: object } = {}): Promise<App> {
  const root = options.root ?? tempFolder()
  const flushes: FlushControl = { count: 0, on: undefined }
  const logs: string[] = []
  const control = {
    name: 'test-control',
    apply(ctx: Context) {
      ctx.on('session/flush', (session) => {
        flushes.count += 1
        return flushes.on?.(session) as Promise<void>
      })
    },
  }
  const harness = await createHarness({
    compression: 'none',
    onLog: (line) => void logs.push(line),
    ...options,
    root,
    plugins: [[control], ...(options.plugins ?? [[policy, options.config]])],
  })
  const records: CheckpointRecord[] = []
  const checkpoints = harness.ctx.get('checkpoints') as Context['checkpoints'] | undefined
  checkpoints?.observe((record) => records.push(record))
  onTestFinished(() => harness.dispose())
  return Object.assign(harness, {
    root,
    flushes,
    records,
    barriers: () => records.filter((record) => record.kind === 'barrier'),
    logs,
  })
}

/** An error as `fs` makes it. */
export function storageError(code: string): Error {
  return Object.assign(new Error(`${code}: no space left on device, write '/somewhere/private/session.jsonl'`), {
    code,
  })
}

/** One line per barrier: `boundary:outcome:flushOutcome`. */
export function summary(barriers: readonly SettledBarrier[]): string[] {
  return barriers.map(({ boundary, outcome, flushOutcome }) => `${boundary}:${outcome}:${flushOutcome}`)
}
