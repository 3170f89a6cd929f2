/** The demo's agent, with witnesses at the model adapter and in the tool bodies that look at the log from outside. */
import type { Agent } from '@deepseek-ai/dsh-agent'
import type { SessionEvent } from '@deepseek-ai/dsh-session'
import { createHarness, createTool, ScriptedModel, type Harness } from '../testing/harness.ts'
import { Tally } from './checklist.ts'
import { StagedFault } from './demo-fault.ts'
import { within, type DemoStage } from './demo-stage.ts'
import { LogTail } from './session-log.ts'

/** A `tool/result` event of the log. */
export type ToolResultEvent = Extract<SessionEvent, { type: 'tool/result' }>

/** One agent on a real harness, its log, and what its witnesses saw. */
export class LiveAgent {
  readonly harness: Harness
  readonly agent: Agent
  readonly fault: StagedFault
  readonly path: string
  /** Requests that found every event on disk when they reached the adapter. */
  readonly requests = new Tally()
  /** Bodies that found their own call on disk when they were entered. */
  readonly bodies = new Tally()
  /** Ids of calls whose body was entered. */
  readonly entered = new Set<string>()
  /** Called once, at the adapter: the request's barrier is behind it, its tools' are ahead. */
  atAdapter: (() => void) | undefined
  /** Called once, when a step has started: its own barrier is behind it, its request's is ahead. */
  atStep: (() => void) | undefined
  readonly #tail: LogTail

  /** Start the application of `stage` and an agent in it. */
  static async start(stage: DemoStage, id: string): Promise<LiveAgent> {
    const policy = (await import(stage.policy)) as object
    const fault = new StagedFault()
    const { parallel } = stage.options
    // The tools exist before the agent they report to.
    const witness: { live?: LiveAgent } = {}
    const body = async (_args: unknown, { callId }: { readonly callId: string }) => witness.live?.enter(callId)
    const harness = await createHarness({
      root: stage.sessions,
      // Readable with any pager; `npx dsh-checkpoint-otel bench` compares the encodings.
      compression: 'none',
      maxParallelToolCalls: parallel,
      tools: [createTool('write', body), createTool('read', body, { parallel: true })],
      plugins: [[policy, {}], [fault]],
    })
    stage.barriers.listen(harness.ctx.get('checkpoints'))
    const { agent } = await harness.createAgent(id)
    return (witness.live = new LiveAgent(harness, agent, fault))
  }

  private constructor(harness: Harness, agent: Agent, fault: StagedFault) {
    this.harness = harness
    this.agent = agent
    this.fault = fault
    this.path = harness.ctx.sessionPersistence.locate(agent.session.header)?.path ?? ''
    this.#tail = new LogTail(this.path)
    harness.model.onRequest = () => {
      this.requests.note(this.#tail.read().length === agent.session.seq)
      const act = this.atAdapter
      this.atAdapter = undefined
      act?.()
    }
    harness.ctx.on('session/event', (_session, event) => {
      if (event.type !== 'step/start') return
      const act = this.atStep
      this.atStep = undefined
      act?.()
    })
  }

  get model(): ScriptedModel {
    return this.harness.model
  }

  /** The body of every tool. */
  async enter(callId: string): Promise<string> {
    this.entered.add(callId)
    this.#tail.read()
    this.bodies.note(this.#tail.calls.has(callId))
    // One turn of the event loop, so that parallel bodies overlap.
    await new Promise(setImmediate)
    return 'ok'
  }

  /** Take one turn. */
  say(text: string): Promise<void> {
    return within(`the turn "${text}"`, this.harness.say(this.agent, text))
  }

  /** Everything appended so far, read back from disk. */
  async events(): Promise<readonly SessionEvent[]> {
    await within('a flush', this.harness.ctx.sessions.flush(this.agent.session))
    return this.#tail.read()
  }

  /** Results of one call, read back from disk. */
  async results(callId: string): Promise<readonly ToolResultEvent[]> {
    return (await this.events()).filter(
      (event): event is ToolResultEvent => event.type === 'tool/result' && event.data.message.source.callId === callId,
    )
  }

  /** How the latest turn ended, read back from disk. */
  async lastTurn(): Promise<string | undefined> {
    return (await this.events()).findLast((event) => event.type === 'turn/end')?.data.reason?.kind
  }
}
