/**
 * A real agent on the published harness core: real session store, tool runtime, agent loop and JSONL files with fsync.
 * Only the model is scripted. The demo, the benchmark, the conformance suite and the tests all run on this.
 */
import { Context, type Fiber } from '@deepseek-ai/cordis'
import AgentRegistry, { type Agent, type AgentHandle } from '@deepseek-ai/dsh-agent'
import AgentLoop from '@deepseek-ai/dsh-agent-loop'
import LlmRuntime, { createUserMessage, LlmAdapter, type GenerateOptions, type StreamChunk } from '@deepseek-ai/dsh-llm'
import SessionStore, { SessionId } from '@deepseek-ai/dsh-session'
import JsonlSessionPersistence from '@deepseek-ai/dsh-session-persistence-jsonl'
import SystemPrompt from '@deepseek-ai/dsh-system-prompt'
import ToolRuntime, { type ToolDefinition } from '@deepseek-ai/dsh-tools'

/** A call the scripted model makes. */
export interface ScriptedCall {
  readonly name: string
  readonly args?: Record<string, unknown>
  /** Id of the call; made up when absent. */
  readonly id?: string
}

/** One answer of the scripted model: text, tool calls, or any stream. */
export type ScriptedAnswer =
  | string
  | readonly ScriptedCall[]
  | ((request: GenerateOptions) => AsyncIterable<StreamChunk> | Iterable<StreamChunk>)

/** A model that gives the scripted answers in order, then `done` for ever. */
export class ScriptedModel extends LlmAdapter {
  /** Requests that reached the adapter, newest last; at most {@link ScriptedModel.KEPT}. */
  readonly requests: GenerateOptions[] = []
  /** Called when a request reaches the adapter, before its first chunk. */
  onRequest: ((request: GenerateOptions) => void) | undefined
  static readonly KEPT = 1_000
  readonly #answers: ScriptedAnswer[]
  #calls = 0

  constructor(answers: readonly ScriptedAnswer[] = []) {
    super()
    this.#answers = [...answers]
  }

  /** Append answers to the script. */
  push(...answers: readonly ScriptedAnswer[]): void {
    this.#answers.push(...answers)
  }

  /** Begin another script, whatever is left of the last one. */
  replace(answers: readonly ScriptedAnswer[]): void {
    this.#answers.splice(0, Infinity, ...answers)
  }

  override async *stream(request: GenerateOptions): AsyncIterable<StreamChunk> {
    this.requests.push(request)
    if (this.requests.length > ScriptedModel.KEPT) this.requests.shift()
    this.onRequest?.(request)
    const answer = this.#answers.shift() ?? 'done'
    if (typeof answer === 'string') yield* textChunks(answer)
    else if (typeof answer === 'function') yield* answer(request)
    else yield* callChunks(answer.map((call) => ({ ...call, id: call.id ?? `call-${(this.#calls += 1)}` })))
  }
}

/** How a harness is put together. */
export interface HarnessOptions {
  /** Folder of the session logs. */
  readonly root: string
  readonly compression?: 'zstd' | 'none'
  readonly writeBatchMaxDelayMs?: number
  readonly maxParallelToolCalls?: number
  readonly model?: ScriptedModel
  readonly tools?: readonly ToolDefinition[]
  /** Backend in place of the stock JSONL one; it gets the same config. */
  readonly persistence?: object
  /** Mounted before the agent loop, in this order: a policy, a strategy, a listener. */
  readonly plugins?: readonly (readonly [plugin: object, config?: unknown])[]
  /** Takes the lines that host and plugins log; without it they are dropped. */
  readonly onLog?: (line: string) => void
}

/** A running application. */
export interface Harness {
  readonly ctx: Context
  readonly model: ScriptedModel
  /** Fiber of the persistence backend. */
  readonly persistence: Fiber
  /** Fibers of `options.plugins`, in order. */
  readonly plugins: readonly Fiber[]
  /** Mount one more plugin and wait until it runs. */
  mount(plugin: object, config?: unknown): Promise<Fiber>
  createAgent(id?: string, meta?: { delegationDepth?: number; agentPreset?: string }): Promise<AgentHandle>
  resumeAgent(id: string): Promise<AgentHandle>
  /** Say something to the agent and wait until it is idle again. */
  say(agent: Agent, text: string): Promise<void>
  dispose(): Promise<void>
}

/** Start an application. */
export async function createHarness(options: HarnessOptions): Promise<Harness> {
  const ctx = new Context()
  // Every level: Cordis drops warnings unless an exporter asks for them.
  ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => options.onLog?.(args.map(String).join(' ')) })
  const mount = async (plugin: object, config?: unknown): Promise<Fiber> => {
    const fiber = ctx.plugin(plugin as never, config as never) as unknown as Fiber
    await fiber.await()
    return fiber
  }
  await mount(SystemPrompt)
  await mount(LlmRuntime)
  await mount(SessionStore)
  await mount(ToolRuntime, {})
  await mount(AgentRegistry)
  const { root, compression = 'zstd', writeBatchMaxDelayMs = 200, maxParallelToolCalls = 10 } = options
  const persistence = await mount(options.persistence ?? JsonlSessionPersistence, {
    root,
    compression,
    writeBatchMaxDelayMs,
  })
  const plugins: Fiber[] = []
  for (const [plugin, config] of options.plugins ?? []) plugins.push(await mount(plugin, config))
  await mount(AgentLoop, { maxParallelToolCalls, agents: [] })
  const model = options.model ?? new ScriptedModel()
  ctx.llm.registerAdapter([PROVIDER], model)
  for (const tool of options.tools ?? []) ctx.tools.register(tool)
  const agentOptions = { provider: PROVIDER, model: MODEL }
  let agents = 0
  return {
    ctx,
    model,
    persistence,
    plugins,
    mount,
    createAgent: (id = `agent-${(agents += 1)}`, meta = {}) =>
      ctx.agents.create({ sessionId: SessionId(id), agentOptions, meta }),
    resumeAgent: (id) => ctx.agents.resume({ resumeSessionId: SessionId(id), agentOptions }),
    async say(agent, text) {
      agent.followup(createUserMessage({ content: [{ type: 'text', text }], source: { kind: 'user' } }))
      await agent.whenIdle()
    },
    dispose: async () => {
      await ctx.fiber.dispose()
    },
  }
}

/** Provider and model of the scripted adapter. */
export const PROVIDER = 'scripted'
export const MODEL = 'scripted-1'

/** A tool that runs `body` and answers its text. */
export function createTool(
  name: string,
  body: (args: Record<string, unknown>, exec: { readonly callId: string; readonly signal: AbortSignal }) => unknown,
  options: { readonly parallel?: boolean } = {},
): ToolDefinition {
  return {
    name,
    description: `The ${name} tool.`,
    parameters: { type: 'object', properties: {}, additionalProperties: true },
    output: { schema: { type: 'string' }, render: (_args, value) => [{ type: 'text', text: String(value) }] },
    isConcurrencySafe: () => options.parallel === true,
    async execute(args, exec) {
      return String((await body((args ?? {}) as Record<string, unknown>, exec)) ?? 'ok')
    },
  }
}

/** Chunks of a text answer. */
export function* textChunks(text: string): Iterable<StreamChunk> {
  yield { type: 'block-start', index: 0, blockType: 'text' }
  yield { type: 'text-delta', index: 0, text }
  yield { type: 'block-end', index: 0, block: { type: 'text', text } }
  yield { type: 'finish', reason: { kind: 'stop' } }
}

function* callChunks(calls: readonly (ScriptedCall & { readonly id: string })[]): Iterable<StreamChunk> {
  for (const [index, { id, name, args = {} }] of calls.entries()) {
    const block = { type: 'tool-call', id, name, arguments: JSON.stringify(args) } as never
    yield { type: 'block-start', index, blockType: 'tool-call' }
    yield { type: 'tool-call-delta', index, id: id as never, name, argumentsDelta: JSON.stringify(args) }
    yield { type: 'block-end', index, block }
  }
  yield { type: 'finish', reason: { kind: 'tool-calls' } }
}
