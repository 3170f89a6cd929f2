/** A run of real agents in which every outcome of the contract happens, each process on an endpoint of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Context } from '@deepseek-ai/cordis'
import { expect, vi } from 'vitest'
import * as policy from '../../src/index.ts'
import * as prometheus from '../../src/prometheus.ts'
import { createTool, ScriptedModel } from '../../src/testing/harness.ts'
import { createApp, storageError, tempFolder, type App } from './app.ts'
import { freePort } from './scrape.ts'

/** One scraped application. */
interface Scraped {
  readonly app: App
  readonly port: number
  readonly instance: string
  /** Say something, and wait for the write at the end of the turn. */
  turn(): Promise<void>
}

const CRASH_CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url))

/** Agents that are idle and have done nothing yet. */
export async function createFleet() {
  const steady = await createScraped('steady', {})
  const limited = await createScraped('limited', { timeoutMs: 200 })
  const lenient = await createScraped('lenient', { allowUnguarded: true })
  const unconfirmed = await createScraped('unconfirmed', {})
  const root = tempFolder()
  await crash(root)
  const resumed = await createScraped('resumed', {}, root)
  const fleet = [steady, limited, lenient, unconfirmed, resumed]
  return { fleet, run: () => runAll(steady, limited, lenient, unconfirmed, resumed) }
}

async function runAll(
  steady: Scraped,
  limited: Scraped,
  lenient: Scraped,
  unconfirmed: Scraped,
  resumed: Scraped,
): Promise<void> {
  // durable
  await steady.turn()
  await steady.turn()
  // rejected, with the cause that storage names
  steady.app.flushes.on = () => {
    if (isAt(steady.app, 'tool')) throw storageError('ENOSPC')
  }
  await steady.turn()
  // aborted while its flush is pending
  await hold(steady, async (agent) => {
    await vi.waitFor(() => expect(isAt(steady.app, 'tool')).toBe(true))
    agent.cancel({ kind: 'user' } as never)
  })
  // timeout
  await hold(limited, () => Promise.resolve())
  // unguarded, and a strategy that throws
  let decided = 0
  const decide = ({ guarded }: { guarded: boolean }) => {
    decided += 1
    if (decided % 5 === 0) throw new Error('no idea')
    return guarded ? { kind: 'skip', reason: 'to show it' } : { kind: 'flush' }
  }
  await lenient.app.mount({
    name: 'skipper',
    apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name: 'skipper', decide }),
  })
  await lenient.turn()
  await lenient.turn()
  // unconfirmed: the flush resolves, and no backend took part
  const store = (unconfirmed.app.ctx.sessions as unknown as Record<symbol, { flush(): Promise<boolean> }>)[
    Symbol.for('cordis.original')
  ]
  if (store === undefined) throw new Error('the host no longer wraps its services')
  vi.spyOn(store, 'flush').mockResolvedValue(false)
  await unconfirmed.app.plugins[1]?.restart()
  await unconfirmed.app.plugins[2]?.await()
  const { agent } = await unconfirmed.app.createAgent()
  await unconfirmed.app.say(agent, 'hi')
  // recovered
  await resumed.app.resumeAgent('victim')
  await vi.waitFor(() => expect(resumed.app.records.filter(({ kind }) => kind === 'recovered')).toHaveLength(2))
}

async function createScraped(instance: string, config: object, root?: string): Promise<Scraped> {
  const port = await freePort()
  const app = await createApp({
    ...(root === undefined ? {} : { root }),
    model: new ScriptedModel(),
    tools: [createTool('write', () => 'written')],
    plugins: [
      [policy, config],
      [prometheus, { port }],
    ],
  })
  let agent: Awaited<ReturnType<App['createAgent']>>['agent'] | undefined
  const turn = async () => {
    agent ??= (await app.createAgent()).agent
    const before = turnEnds(app)
    app.model.push([{ name: 'write' }])
    await app.say(agent, 'hi')
    await vi.waitFor(() => expect(turnEnds(app)).toBe(before + 1))
  }
  return { app, port, instance, turn }
}

/** One turn whose flush at the tool does not end before the turn does. */
async function hold(
  { app }: Scraped,
  meanwhile: (agent: Awaited<ReturnType<App['createAgent']>>['agent']) => Promise<void>,
): Promise<void> {
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => (isAt(app, 'tool') ? gate.promise : undefined)
  const { agent } = await app.createAgent()
  app.model.push([{ name: 'write' }])
  const said = app.say(agent, 'hi')
  await meanwhile(agent)
  await said
  app.flushes.on = undefined
  gate.resolve()
}

/** Kill a process inside a tool body: its log has one call with an unknown outcome and one that was not started. */
async function crash(root: string): Promise<void> {
  const child = spawn(process.execPath, [CRASH_CHILD, root, 'tool'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) if (line === 'at tool') break
  child.kill('SIGKILL')
  await exited
}

const isAt = (app: App, boundary: string) => app.ctx.checkpoints.open().some((barrier) => barrier.boundary === boundary)
const turnEnds = (app: App) => app.barriers().filter(({ boundary }) => boundary === 'turn').length
