/** An agent in a process of its own that takes orders over IPC, so that its limits, its user and its disk can be real. */
import { randomBytes } from 'node:crypto'
import type { Context } from '@deepseek-ai/cordis'
import type { GenerateOptions } from '@deepseek-ai/dsh-llm'
import * as policy from '../../src/index.ts'
import type { SettledBarrier } from '../../src/index.ts'
import { createHarness, createTool, ScriptedModel, textChunks, type ScriptedAnswer } from '../../src/testing/harness.ts'
import { SESSION } from './plan.ts'
import type { Answer, Order, RemotePlan, Sight } from './remote-protocol.ts'

const plan = JSON.parse(process.argv[2] ?? '{}') as RemotePlan
/** More than a page whatever the encoding: no append fits into what a full disk has left in the last block of the log. */
const PADDING = randomBytes(6_000).toString('base64url')
const bodies: string[] = []
const requests: string[] = []
const barriers: SettledBarrier[] = []
const logs: string[] = []
let turnKind: string | undefined
let proceed: (() => void) | undefined
let running: Promise<void> | undefined

const body = (_args: unknown, exec: { readonly callId: string }) => void bodies.push(exec.callId)
const model = new ScriptedModel()
model.onRequest = (request) => requests.push(textOf(request))
const strategy =
  plan.strategy === undefined ? undefined : ((await import(plan.strategy.module)) as { default: object }).default
const eyes = {
  name: 'eyes',
  apply(ctx: Context) {
    ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => void logs.push(args.map(String).join(' ')) })
    ctx.on('session/event', (_session, event) => {
      if (event.type === 'turn/start') turnKind = undefined
      if (event.type === 'turn/end') turnKind = event.data.reason.kind
    })
  },
}
process.on('unhandledRejection', (error) => {
  logs.push(`UNHANDLED ${String(error)}`)
})
const harness = await createHarness({
  root: plan.root,
  compression: plan.compression,
  model,
  tools: [createTool('write', body), createTool('read', body, { parallel: true })],
  plugins: [
    [eyes],
    [policy, plan.policy],
    ...(strategy === undefined ? [] : [[strategy, plan.strategy?.config] as const]),
  ],
})
const { checkpoints } = harness.ctx
checkpoints.observe((record) => {
  if (record.kind === 'barrier') barriers.push(record)
})
if (plan.uid !== undefined) {
  process.setgid?.(plan.uid)
  process.setuid?.(plan.uid)
}
const { agent } = plan.resume === true ? await harness.resumeAgent(SESSION) : await harness.createAgent(SESSION)

process.on('message', (order: Order) => void obey(order).then((sight) => process.send?.(sight)))
process.send?.(look())

async function obey(order: Order): Promise<Sight> {
  switch (order.kind) {
    case 'turn':
    case 'begin':
      model.replace(order.answers.map(toScript))
      running = harness.say(agent, `go ${PADDING}`)
      if (order.kind === 'turn') await running
      return look()
    case 'proceed':
      proceed?.()
      return look()
    case 'abort':
      agent.cancel({ kind: 'user' } as never)
      await agent.whenIdle()
      return look()
    case 'settled':
      await running
      return look()
    case 'look':
      return look()
    case 'unload':
      await harness.plugins[1]?.dispose()
      return look()
    case 'dispose':
      await harness.dispose()
      setImmediate(() => process.disconnect())
      return look()
  }
}

function toScript({ pause, text = 'done', calls }: Answer): ScriptedAnswer {
  const padded = calls?.map((call) => ({ ...call, args: { padding: PADDING } }))
  const words = `${text} ${PADDING}`
  if (pause !== true) return padded ?? words
  return async function* held() {
    await new Promise<void>((resolve) => {
      proceed = resolve
    })
    yield* padded === undefined ? textChunks(words) : new ScriptedModel([padded]).stream({} as never)
  }
}

function look(): Sight {
  const { events } = agent.session
  const results: Record<string, string> = {}
  for (const event of events) {
    if (event.type !== 'tool/result') continue
    const { callId } = event.data.message.source
    const block = event.data.message.content[0] as unknown as { isError?: boolean; content: { text: string }[] }
    const text = block.isError === true ? block.content.map((part) => part.text).join('') : 'ok'
    results[callId] = results[callId] === undefined ? text : `twice: ${results[callId]}, ${text}`
  }
  return {
    turn: turnKind,
    bodies: bodies.splice(0),
    requests: requests.splice(0),
    results,
    barriers: barriers.splice(0),
    logs: logs.splice(0),
    state: checkpoints.state(),
    open: checkpoints.open(),
    events: events.length,
  }
}

function textOf(request: GenerateOptions): string {
  return JSON.stringify(request.messages).replaceAll(PADDING, '')
}
