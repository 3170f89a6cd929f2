/** An app under one of the shipped strategies. */
import * as policy from '../../src/index.ts'
import type { Disk } from '../../src/testing/disk.ts'
import { createTool, ScriptedModel, type ScriptedAnswer } from '../../src/testing/harness.ts'
import { createApp, type App } from './app.ts'
import { isOnDisk } from './log.ts'

export interface UnderOptions {
  readonly policy?: object
  readonly answers?: readonly ScriptedAnswer[]
  readonly disk?: Disk
}

/** Bodies that ran, and whether their call was on disk when they began. */
export type Ran = [name: string, onDisk: boolean][]

/** An app whose model makes a call of `write` and then two of `read`, which is parallel. */
export async function createUnder(
  strategy: object | undefined,
  config?: object,
  options: UnderOptions = {},
): Promise<{ app: App; ran: Ran }> {
  const ran: Ran = []
  const body = (name: string) => (_args: unknown, exec: { readonly callId: string }) => {
    ran.push([name, isOnDisk(app.root, exec.callId)])
  }
  const app = await createApp({
    model: new ScriptedModel(options.answers ?? [[{ name: 'write' }], [{ name: 'read' }, { name: 'read' }]]),
    tools: [createTool('write', body('write')), createTool('read', body('read'), { parallel: true })],
    plugins: [[policy, options.policy], ...(strategy === undefined ? [] : [[strategy, config] as const])],
    ...(options.disk === undefined ? {} : { persistence: options.disk.plugin }),
  })
  return { app, ran }
}

/** What {@link createUnder} runs when every body is guarded. */
export const ALL_ON_DISK: Ran = [
  ['write', true],
  ['read', true],
  ['read', true],
]
