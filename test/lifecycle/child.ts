/**
 * `node --expose-gc child.ts SEED ROUNDS TRACER`: plugins of this package come and go at random under an agent at work;
 * then everything that could have stayed behind is counted. Ends by itself, with one line of JSON.
 */
import { getEventListeners } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import type { Context, Fiber } from '@deepseek-ai/cordis'
import { context, metrics, trace } from '@opentelemetry/api'
import { register } from 'prom-client'
import type { Checkpoints } from '../../src/index.ts'
import { createHarness, createTool, MODEL, PROVIDER, ScriptedModel } from '../../src/testing/harness.ts'
import { createRandom, eventually } from '../../src/testing/wait.ts'
import { delayLookups, registerCountingTracer, startSink } from './world.ts'
import { createPlugins } from './plugins.ts'

const [seed = 1, rounds = 10, withTracer = 0] = process.argv.slice(2).map(Number)
const random = createRandom(seed)
const below = (limit: number) => Math.floor(random() * limit)
const problems: string[] = []
/** Patience for what ends a turn of the event loop or an export later. */
const SETTLE_MS = 5_000
/** Unloaded policies that the last rounds may still hold: by the agent's last promise, or by the conservative stack. */
const MAX_ALIVE = 3

const sink = await startSink()
const tracer = withTracer === 1 ? registerCountingTracer() : undefined
const lookups = delayLookups(() => below(4))
const root = mkdtempSync(join(tmpdir(), 'dsh-lifecycle-'))

/** What the `session/flush` listener beside the backend does. */
const flushes = { count: 0, delay: () => 0 }
const control = {
  name: 'control',
  apply(ctx: Context) {
    ctx.on('session/flush', async () => {
      flushes.count += 1
      const delayMs = flushes.delay()
      if (delayMs > 0) await sleep(delayMs)
    })
  },
}
const model = new ScriptedModel()
const bodies: string[] = []
const harness = await createHarness({
  root,
  compression: 'none',
  model,
  plugins: [[control]],
  tools: [
    createTool('write', (_args, exec) => void bodies.push(exec.callId)),
    createTool('read', () => 'ok', { parallel: true }),
  ],
})
const { ctx } = harness
const plugins = createPlugins(sink.endpoint)
const endless = new AbortController()
const policies: WeakRef<Checkpoints>[] = []
let handle = await harness.createAgent()
let { agent } = handle
let calls = 0

const call = (signal: AbortSignal = endless.signal) =>
  ctx.tools.execute({ callId: `call-${(calls += 1)}` as never, name: 'write', arguments: {}, agent, signal })
const stream = () => ctx.llm.stream({ provider: PROVIDER, model: MODEL, messages: [], sessionId: agent.session.id })

/** One of the things that an agent does, or begins and leaves. */
const WORK: readonly (() => Promise<unknown>)[] = [
  () => call(),
  () => {
    const abort = new AbortController()
    setImmediate(() => abort.abort())
    return call(abort.signal)
  },
  async () => {
    for await (const chunk of stream()) void chunk
  },
  async () => {
    for await (const chunk of stream()) {
      void chunk
      break
    }
  },
  async () => {
    const late = stream()[Symbol.asyncIterator]()
    await pause()
    await late.next()
    await late.return?.()
  },
  async () => void stream(),
  async () => {
    model.replace([[{ name: 'write' }], [{ name: 'read' }, { name: 'read' }], 'done'])
    await harness.say(agent, 'go')
  },
]

/** Nothing, a few microtasks, a turn of the event loop, or a millisecond. */
async function pause(): Promise<void> {
  switch (below(5)) {
    case 0:
      return
    case 1:
      for (let tick = below(20); tick > 0; tick -= 1) await Promise.resolve()
      return
    case 2:
      return immediate()
    default:
      await sleep(below(3))
  }
}

/** Some plugins in some order, each mounted, perhaps reloaded, and disposed, while the agent works. */
async function round(number: number): Promise<void> {
  flushes.delay = () => (below(3) === 0 ? below(4) : 0)
  const mounted: Fiber[] = []
  const pending: Promise<unknown>[] = []
  const tolerate = (promise: PromiseLike<unknown>) =>
    void pending.push(Promise.resolve(promise).then(undefined, () => {}))
  const order = plugins.filter(({ often }) => random() < often).sort(() => random() - 0.5)
  for (const { create } of order) {
    const [plugin, config] = create(below)
    const fiber = ctx.plugin(plugin as never, config as never) as unknown as Fiber
    mounted.push(fiber)
    tolerate(fiber.await())
    if (below(2) === 0) tolerate(WORK[below(WORK.length)]?.() ?? Promise.resolve())
    await pause()
  }
  const seen = ctx.get('checkpoints') as Checkpoints | undefined
  if (seen !== undefined) policies.push(new WeakRef(seen))
  for (const fiber of [...mounted].sort(() => random() - 0.5)) {
    tolerate(WORK[below(WORK.length)]?.() ?? Promise.resolve())
    if (below(3) === 0) {
      tolerate(fiber.restart())
      await pause()
    }
    tolerate(fiber.dispose())
    if (below(8) === 0) tolerate(fiber.dispose())
    await pause()
  }
  await Promise.all(pending)
  await agent.whenIdle()
  flushes.delay = () => 0
  examine(`round ${number}`)
  await mountOnce(`round ${number}`, number % 25 === 0)
}

/** Nothing of ours is known to the host or to the process. */
function examine(when: string): void {
  const left = (what: string, value: unknown, wanted: unknown) => {
    if (JSON.stringify(value) !== JSON.stringify(wanted))
      problems.push(`${when}: ${what}: ${JSON.stringify(value)}, expected ${JSON.stringify(wanted)}`)
  }
  left('services', [ctx.get('checkpoints') !== undefined, ctx.get('checkpointStrategy') !== undefined], [false, false])
  left('plugins', [...ctx.registry.values()].filter(({ fibers }) => fibers.length > 0).length, host.plugins)
  left('effects of the host', ctx.fiber.getEffects().length, host.effects)
  left('listeners of the host', hooks(), host.hooks)
  left('abort listeners', getEventListeners(endless.signal, 'abort').length, 0)
  left('listeners of the process', processListeners(), host.processListeners)
  left('metrics of the host', register.getMetricsAsArray().length, 0)
  left('globals of OpenTelemetry', slots(), host.slots)
  if (tracer !== undefined) left('open spans', tracer.open(), 0)
}

/** Mounted once more, the policy asks for one flush at each boundary. */
async function mountOnce(when: string, wholeTurn: boolean): Promise<void> {
  const [plugin, config] = plugins[0]?.create(() => 0) ?? []
  if (wholeTurn) {
    // A turn that failed leaves what was said after it in the queue of its agent; and a log that grows is slow.
    await handle.dispose()
    handle = await harness.createAgent()
    agent = handle.agent
  }
  const fiber = await harness.mount(plugin as object, config)
  const told: string[] = []
  ctx.checkpoints.observe((record) => record.kind === 'barrier' && told.push(record.boundary))
  flushes.count = 0
  await call()
  for await (const chunk of stream()) void chunk
  const wanted = ['tool', 'request']
  if (wholeTurn) {
    model.replace([[{ name: 'write' }], 'done'])
    await harness.say(agent, 'again')
    wanted.push('step', 'request', 'tool', 'step', 'request', 'turn')
    await eventually(SETTLE_MS, () => ctx.checkpoints.open().length === 0 && told.length === wanted.length)
  }
  if (told.join() !== wanted.join() || flushes.count !== wanted.length)
    problems.push(`${when}: barriers ${told.join()}, ${flushes.count} flushes`)
  if (ctx.checkpoints.open().length > 0) problems.push(`${when}: open barriers`)
  await fiber.dispose()
}

function hooks(): Record<string, number> {
  const all = (ctx.events as unknown as { _hooks: Record<string, unknown[]> })._hooks
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, list]) => list.length > 0)
      .map(([name, list]) => [name, list.length]),
  )
}

function processListeners(): string[] {
  return process
    .eventNames()
    .map((name) => `${String(name)} ${process.listenerCount(name)}`)
    .sort()
}

function slots(): string[] {
  const registry =
    (globalThis as Record<symbol, Record<string, unknown> | undefined>)[Symbol.for('opentelemetry.js.api.1')] ?? {}
  return Object.keys(registry).filter((key) => key !== 'version' && registry[key] !== undefined)
}

/** Sockets, servers and timers, sorted; the agent's own writes come and go. */
const resources = () =>
  process
    .getActiveResourcesInfo()
    .filter((name) => !/^(FSReqPromise|Immediate)$/.test(name))
    .sort()
    .join()
const files = () => readdirSync('/proc/self/fd').length

// Everything has been loaded once before anything is counted.
const host = { plugins: 0, effects: 0, hooks: {}, processListeners: [] as string[], slots: [] as string[] }
const measure = () =>
  Object.assign(host, {
    plugins: [...ctx.registry.values()].filter(({ fibers }) => fibers.length > 0).length,
    effects: ctx.fiber.getEffects().length,
    hooks: hooks(),
    processListeners: processListeners(),
    slots: slots(),
  })
measure()
for (const { create } of plugins) {
  const [plugin, config] = create(() => 0)
  await (await harness.mount(plugin, config).catch(() => undefined))?.dispose()
}
await ctx.sessions.flush(agent.session)
const before = { resources: resources(), files: files() }

for (let number = 1; number <= rounds && problems.length < 10; number += 1) await round(number)

if (!(await eventually(SETTLE_MS, () => resources() === before.resources)))
  problems.push(`resources: ${resources()}, expected ${before.resources}`)
if (!(await eventually(SETTLE_MS, () => files() <= before.files)))
  problems.push(`open files: ${files()}, expected ${before.files}`)
for (let turn = 0; turn < 5; turn += 1) {
  await immediate()
  globalThis.gc?.()
}
const alive = policies.filter((policy) => policy.deref() !== undefined).length
if (alive > MAX_ALIVE) problems.push(`${alive} of ${policies.length} unloaded policies are still in memory`)

await harness.dispose()
lookups.restore()
for (const api of [context, trace, metrics]) api.disable()
await sink.close()
rmSync(root, { recursive: true })
console.log(
  JSON.stringify({
    problems,
    rounds,
    flushes: flushes.count,
    bodies: bodies.length,
    policies: policies.length,
    alive,
    spans: tracer?.ended() ?? 0,
    exports: sink.requests(),
  }),
)
