/** One app and one policy under which every outcome of the contract happens, as often as wanted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Context } from '@deepseek-ai/cordis'
import { expect, vi } from 'vitest'
import * as policy from '../../src/index.ts'
import { createTool, ScriptedModel } from '../../src/testing/harness.ts'
import { createApp, storageError, tempFolder, type App } from './app.ts'

/** The app, and the run. */
export interface MixedApp {
  readonly app: App
  /** Turns until so many barriers settled, every outcome among them; idle and settled when it resolves. */
  readonly run: (barriers: number) => Promise<void>
}

const TIMEOUT_MS = 250

/** Start it; `plugins` are mounted around the policy, those before it first. */
export async function createMixedApp(plugins: readonly (readonly [object, unknown?])[]): Promise<MixedApp> {
  const root = tempFolder()
  await crash(root)
  const unconfirmed = { next: false }
  const app = await createApp({
    root,
    model: new ScriptedModel(),
    tools: [createTool('write', () => 'written')],
    plugins: [[flushOf(unconfirmed)], [policy, { timeoutMs: TIMEOUT_MS, allowUnguarded: true }], ...plugins],
  })
  await app.mount(mixedStrategy)
  return { app, run: (barriers) => run(app, unconfirmed, barriers) }
}

async function run(app: App, unconfirmed: { next: boolean }, barriers: number): Promise<void> {
  await app.resumeAgent('victim')
  let { agent } = await app.createAgent()
  for (let turn = 0; app.barriers().length < barriers; turn += 1) {
    // A short log is a fast log.
    if (turn % 50 === 49) ({ agent } = await app.createAgent())
    const turns = settledTurns(app)
    const kind = turn % 20
    if (kind === 3) await hold(app, agent, false)
    else if (kind === 7) await hold(app, agent, true)
    else {
      if (kind === 11) app.flushes.on = () => isAt(app, 'tool') && Promise.reject(storageError('ENOSPC'))
      if (kind === 13) unconfirmed.next = true
      app.model.push([{ name: 'write' }])
      await app.say(agent, 'hi')
    }
    app.flushes.on = undefined
    unconfirmed.next = false
    await vi.waitFor(() => expect(settledTurns(app)).toBe(turns + 1))
  }
  await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
}

/** A turn whose flush at the tool does not end: cancelled, or until the limit. */
async function hold(app: App, agent: Awaited<ReturnType<App['createAgent']>>['agent'], cancel: boolean): Promise<void> {
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => (isAt(app, 'tool') ? gate.promise : undefined)
  app.model.push([{ name: 'write' }])
  const before = timeouts(app)
  const said = app.say(agent, 'hi')
  if (cancel) {
    await vi.waitFor(() => expect(isAt(app, 'tool')).toBe(true))
    agent.cancel({ kind: 'user' } as never)
  } else {
    await vi.waitFor(() => expect(timeouts(app)).toBe(before + 1))
  }
  gate.resolve()
  await said
}

/** Skips and throws now and then, at requests: tests hold flushes at tools. */
const mixedStrategy = {
  name: 'mixed-strategy',
  apply(ctx: Context) {
    let requests = 0
    ctx.provide('checkpointStrategy', {
      name: 'mixed',
      decide({ boundary }: { boundary: string }) {
        if (boundary === 'request' && (requests += 1) % 37 === 0) throw new Error('no idea')
        if (boundary === 'request' && requests % 41 === 0) return { kind: 'skip', reason: 'now and then' }
        return { kind: 'flush' }
      },
    })
  },
}

/** Lets one flush resolve without anybody having taken part. */
function flushOf(state: { next: boolean }) {
  return {
    name: 'unconfirmed-flush',
    inject: ['sessions'],
    apply(ctx: Context) {
      const store = (ctx.sessions as unknown as Record<symbol, { flush(session: unknown): Promise<boolean> }>)[
        Symbol.for('cordis.original')
      ]
      if (store === undefined) throw new Error('the host no longer wraps its services')
      const flush = store.flush.bind(store)
      store.flush = async (session) => {
        if (!state.next) return flush(session)
        state.next = false
        return false
      }
    },
  }
}

/** Kill a process inside a tool body: its log has one call with an unknown outcome and one that was not started. */
async function crash(root: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'crash-child.ts'), root, 'tool'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) if (line === 'at tool') break
  child.kill('SIGKILL')
  await exited
}

const isAt = (app: App, boundary: string) => app.ctx.checkpoints.open().some((barrier) => barrier.boundary === boundary)
const timeouts = (app: App) => app.barriers().filter(({ outcome }) => outcome === 'timeout').length
const settledTurns = (app: App) => app.barriers().filter(({ boundary }) => boundary === 'turn').length
