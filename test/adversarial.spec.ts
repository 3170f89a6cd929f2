/** Unfriendly company: what strategies, observers, other plugins and bad moments must not be able to change. */
import type { Context } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import * as stock from '@deepseek-ai/dsh-session-checkpoint-policy'
import { execFile } from 'node:child_process'
import { setImmediate as immediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Barrier, CheckpointRecord } from '../src/index.ts'
import * as policy from '../src/index.ts'
import coalesced from '../src/strategies/coalesced.ts'
import { createTool, ScriptedModel, type ScriptedCall } from '../src/testing/harness.ts'
import { createApp, storageError, summary, tempFolder, type App } from './support/app.ts'
import { registerSdk } from './support/sdk.ts'

const QUIET = { turnBoundary: false }
const LONG_MS = 1_000
const IN_VAIN_MS = 500
/** More microtasks than lie between the end of a flush and the first chunk or the body. */
const MICROTASKS = 14

function strategy(decide: (barrier: Barrier) => unknown) {
  return {
    name: 'strategy-under-test',
    apply: (ctx: Context) => void ctx.provide('checkpointStrategy', { name: 'mine', decide } as never),
  }
}

/** An app with one agent and a tool `write` that says when it ran. */
async function createCalls(config: object = QUIET) {
  const ran: string[] = []
  const app = await createApp({ config, tools: [createTool('write', (_args, exec) => ran.push(exec.callId))] })
  const { agent } = await app.createAgent()
  const call = (callId: string, signal = new AbortController().signal) => execute(app, agent, callId, signal)
  return { app, agent, ran, call }
}

const execute = (app: App, agent: Agent, callId: string, signal: AbortSignal) =>
  app.ctx.tools.execute({ callId: callId as never, name: 'write', arguments: {}, agent, signal })

const pull = (app: App, agent: Agent) =>
  app.ctx.llm
    .stream({ provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id })
    [Symbol.asyncIterator]()

function watchUnhandled() {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))
  return unhandled
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The same under the stock policy and under this one. */
async function underBoth<T>(story: (app: App) => Promise<T>): Promise<[theirs: T, ours: T]> {
  const results: T[] = []
  for (const plugin of [stock, policy]) {
    results.push(await story(await createApp({ plugins: [[plugin, plugin === policy ? QUIET : undefined]] })))
  }
  return results as [T, T]
}

test('of several pulls at a rejected barrier the first gets the rejection and the others an end, as under the stock policy', async () => {
  const error = storageError('EIO')
  const [theirs, ours] = await underBoth(async (app) => {
    app.flushes.on = () => Promise.reject(error)
    const iterator = pull(app, (await app.createAgent()).agent)
    const pulls = await Promise.allSettled([iterator.next(), iterator.next(), iterator.next()])
    return [...pulls, await iterator.next(), app.flushes.count]
  })
  expect(ours).toEqual(theirs)
  expect(ours[0]).toEqual({ status: 'rejected', reason: error })
})

test('a chain behind the barrier that throws at once is thrown to the first pull, as under the stock policy', async () => {
  const [theirs, ours] = await underBoth(async (app) => {
    app.ctx.on('llm/stream', () => {
      throw new Error('no adapter today')
    })
    const iterator = pull(app, (await app.createAgent()).agent)
    return Promise.allSettled([iterator.next(), iterator.next()])
  })
  expect(ours).toEqual(theirs)
})

test("a session that ends between the hook and the first pull gives the host's own rejection and leaves nothing behind", async () => {
  const app = await createApp()
  const handle = await app.createAgent()
  const iterator = pull(app, handle.agent)
  await handle.dispose()
  await expect(iterator.next()).rejects.toThrow(/not live/)
  expect(app.ctx.checkpoints.open()).toEqual([])
  expect(app.ctx.checkpoints.state()).toMatchObject({ consecutiveFailures: 0, unflushedOldestAgeMs: 0 })
})

for (const late of ['resolves', 'rejects'] as const) {
  test(`a call cancelled at any microtask after its flush ${late} either ran and is dispatched, or did not and is not`, async () => {
    const seen = new Set<string>()
    for (let depth = 0; depth < MICROTASKS; depth += 1) {
      const { app, ran, call } = await createCalls()
      const gate = Promise.withResolvers<void>()
      app.flushes.on = () => gate.promise
      const controller = new AbortController()
      const pending = call('a', controller.signal)
      await vi.waitFor(() => expect(app.flushes.count).toBe(1))
      if (late === 'resolves') gate.resolve()
      else gate.reject(storageError('EIO'))
      for (let microtask = 0; microtask < depth; microtask += 1) await Promise.resolve()
      controller.abort()
      await pending
      const [barrier] = app.barriers()
      expect(app.barriers()).toHaveLength(1)
      expect(barrier?.outcome === 'dispatched', `at depth ${depth}`).toBe(ran.length === 1)
      seen.add(String(barrier?.outcome))
      await app.dispose()
    }
    expect([...seen].toSorted()).toEqual(late === 'resolves' ? ['aborted', 'dispatched'] : ['aborted', 'rejected'])
  })
}

test('a delay that is pending at unload refuses its call and never flushes afterwards', async () => {
  const { app, ran, call } = await createCalls()
  await app.mount(strategy(() => ({ kind: 'flush', delayMs: 100 })))
  const pending = call('a')
  await immediate()
  expect(app.ctx.checkpoints.open()).toHaveLength(1)
  await app.plugins.at(-1)?.dispose()
  await expect(pending).resolves.toMatchObject({ error: { message: expect.stringContaining('was unloaded') } })
  await pause(150)
  expect(app.flushes.count).toBe(0)
  expect(ran).toEqual([])
})

test('a new config under a waiting call refuses that call and holds for the next', async () => {
  const { app, ran, call } = await createCalls()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  const waiting = call('a')
  await vi.waitFor(() => expect(app.flushes.count).toBe(1))
  app.plugins.at(-1)?.update({ ...QUIET, timeoutMs: 20 })
  await expect(waiting).resolves.toMatchObject({ error: { message: expect.stringContaining('was unloaded') } })
  await expect(call('b')).resolves.toMatchObject({
    error: { message: expect.stringMatching(/not durable within \d+ ms/) },
  })
  gate.resolve()
  expect(ran).toEqual([])
})

test('a started write that is pending at unload is recorded as such, and its later failure reaches nobody', async () => {
  const unhandled = watchUnhandled()
  const app = await createApp({ model: new ScriptedModel(['hello']) })
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => (app.flushes.count === 3 ? gate.promise : undefined)
  const { agent } = await app.createAgent()
  const { checkpoints } = app.ctx
  await app.say(agent, 'hi')
  await vi.waitFor(() => expect(checkpoints.open()).toHaveLength(1))
  await app.plugins.at(-1)?.dispose()
  expect(summary(app.barriers()).at(-1)).toBe('turn:dispatched:pending')
  gate.reject(storageError('EIO'))
  await pause(5)
  expect(app.barriers()).toHaveLength(3)
  expect(checkpoints.open()).toEqual([])
  expect(unhandled).not.toHaveBeenCalled()
})

test('a strategy that unloads the policy while it decides gets its call refused', async () => {
  const { app, ran, call } = await createCalls()
  const { checkpoints } = app.ctx
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  await app.mount(strategy(() => (void app.plugins.at(-1)?.dispose(), { kind: 'flush' })))
  await expect(call('a')).resolves.toMatchObject({ error: { message: expect.stringContaining('was unloaded') } })
  expect(checkpoints.open()).toEqual([])
  gate.resolve()
  expect(ran).toEqual([])
})

test('an observer may unload the policy, add observers, and make calls: the observed call has its result', async () => {
  const { app, ran, call } = await createCalls()
  const { checkpoints } = app.ctx
  const later: CheckpointRecord[] = []
  const inner: Promise<unknown>[] = []
  const stop = checkpoints.observe(() => {
    stop()
    checkpoints.observe((record) => later.push(record))
    inner.push(call('inner'))
  })
  await expect(call('outer')).resolves.toMatchObject({ isError: false })
  await Promise.all(inner)
  expect(ran.toSorted()).toEqual(['inner', 'outer'])
  expect(later).toMatchObject([{ callId: 'inner', outcome: 'dispatched' }])

  checkpoints.observe(() => void app.plugins.at(-1)?.dispose())
  await expect(call('last')).resolves.toMatchObject({ isError: false })
})

test('a strategy that was there before the policy decides; one in an isolated scope does not', async () => {
  const early = await createApp({
    plugins: [[strategy(() => ({ kind: 'flush' }))], [policy, QUIET]],
    tools: [createTool('write', () => 'ok')],
  })
  await vi.waitFor(() => expect(early.ctx.checkpoints.state().strategy).toBe('mine'))

  const { app, call } = await createCalls()
  const isolated = app.ctx.isolate('checkpointStrategy')
  await isolated.plugin(strategy(() => ({ kind: 'skip', reason: 'elsewhere' })))
  await call('a')
  expect(app.barriers()).toMatchObject([{ strategy: 'default' }])
})

test('a policy mounted in the middle of a turn guards the rest of it and knows the turn', async () => {
  const held = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const tool = createTool('hold', () => (entered.resolve(), held.promise))
  const app = await createApp({ plugins: [], model: new ScriptedModel([[{ name: 'hold' }], 'end']), tools: [tool] })
  const { agent } = await app.createAgent()
  const saying = app.say(agent, 'go')
  await entered.promise
  await app.mount(policy, {})
  app.ctx.checkpoints.observe((record) => app.records.push(record))
  held.resolve()
  await saying
  await vi.waitFor(() =>
    expect(summary(app.barriers())).toEqual([
      'step:dispatched:durable',
      'request:dispatched:durable',
      'turn:dispatched:durable',
    ]),
  )
  expect(app.barriers()).toMatchObject(Array.from({ length: 3 }, () => ({ turn: 1, step: 2 })))
})

async function createGrouping(answers: readonly (readonly ScriptedCall[])[]) {
  const ran: string[] = []
  const app = await createApp({
    model: new ScriptedModel(answers),
    tools: [createTool('read', (_args, exec) => ran.push(exec.callId), { parallel: true })],
    plugins: [
      [policy, QUIET],
      [coalesced, { groupDelayMs: LONG_MS }],
    ],
  })
  const longestWait = () => Math.max(...app.barriers().map(({ durationMs }) => durationMs))
  return { app, ran, longestWait }
}

test('two sessions that call the same tool under the same ids at once, one id twice, never wait for each other', async () => {
  const calls = ['a', 'b', 'b'].map((id) => ({ name: 'read', id }))
  const { app, ran, longestWait } = await createGrouping([calls, calls])
  const agents = [(await app.createAgent()).agent, (await app.createAgent()).agent]
  await Promise.all(agents.map((agent) => app.say(agent, 'go')))
  expect(ran.toSorted()).toEqual(['a', 'a', 'b', 'b', 'b', 'b'])
  expect(longestWait()).toBeLessThan(IN_VAIN_MS)
})

test('a policy or a guard that throws does not hold the siblings of its call', async () => {
  const { app, ran, longestWait } = await createGrouping([
    ['a', 'policy', 'guard', 'd', 'guard-last'].map((id) => ({ name: 'read', id })),
  ])
  app.ctx.on('tools/pre-execute', (exec, next) =>
    exec.callId === 'policy' ? Promise.reject(new Error('policy')) : next(),
  )
  app.ctx.tools.guard((exec) => {
    if (exec.callId.startsWith('guard')) throw new Error('guard')
    return undefined
  })
  await app.say((await app.createAgent()).agent, 'go')
  expect(ran).toEqual(['a', 'd'])
  expect(longestWait()).toBeLessThan(IN_VAIN_MS)
})

test('a wrapper that holds one call before its barrier does not hold the siblings', async () => {
  const { app, ran, longestWait } = await createGrouping([['a', 'held', 'c'].map((id) => ({ name: 'read', id }))])
  const held = Promise.withResolvers<void>()
  app.ctx.on('tools/execute', async (exec, next) => (exec.callId === 'held' ? held.promise.then(next) : next()), {
    prepend: true,
  })
  const saying = app.say((await app.createAgent()).agent, 'go')
  await vi.waitFor(() => expect(ran).toEqual(['a', 'c']))
  held.resolve()
  await saying
  expect(ran).toEqual(['a', 'c', 'held'])
  expect(longestWait()).toBeLessThan(IN_VAIN_MS)
})

test('an SDK that is replaced while a barrier waits counts that barrier', async () => {
  const first = registerSdk()
  const { app, call } = await createCalls()
  const gate = Promise.withResolvers<void>()
  app.flushes.on = () => gate.promise
  const pending = call('a')
  await vi.waitFor(() => expect(app.flushes.count).toBe(1))
  await first.shutdown()
  const second = registerSdk()
  gate.resolve()
  await pending
  expect(await second.points('dsh.checkpoint.barrier.duration')).toMatchObject([[expect.anything(), 1]])
})

test('two applications in one process keep their records apart and add up in one SDK', async () => {
  const sdk = registerSdk()
  const [one, two] = [await createCalls(), await createCalls()]
  await one.call('one')
  await two.call('two')
  expect([one.app, two.app].map((app) => app.barriers().map(({ callId }) => callId))).toEqual([['one'], ['two']])
  expect(await sdk.points('dsh.checkpoint.policy.active')).toMatchObject([[{}, 2]])
  expect(await sdk.points('dsh.checkpoint.barrier.duration')).toMatchObject([[expect.anything(), 2]])
  await one.app.dispose()
  expect(await sdk.points('dsh.checkpoint.policy.active')).toMatchObject([[{}, 1]])
})

test('a script that never unloads the policy ends by itself', async () => {
  const source = `
    import * as policy from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
    import { createHarness } from ${JSON.stringify(new URL('../src/testing/harness.ts', import.meta.url).href)}
    const harness = await createHarness({ root: ${JSON.stringify(tempFolder())}, plugins: [[policy, {}]] })
    const { agent } = await harness.createAgent()
    await harness.say(agent, 'hi')
    console.log(harness.ctx.checkpoints.state().strategy)
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source], {
    timeout: 15_000,
  })
  expect(stdout).toBe('default\n')
})
