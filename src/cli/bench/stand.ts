/** A test stand: one variant on the real harness, on the disk in question, that plays scripted turns and measures. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { Session } from '@deepseek-ai/dsh-session'
import { createHarness, createTool, type Harness } from '../../testing/harness.ts'
import { answerOf, callIdOf, filler, PARALLEL_TOOL, SERIAL_TOOL, type Pause, type TurnScript } from './script.ts'
import { pluginsOf, nameOf, type OptionalParts, type Variant } from './variants.ts'
import { WaitMeter, type Waits } from './waits.ts'

/** One turn, measured. */
export interface Measured extends Waits {
  /** From `turn/start` to `turn/end`, in milliseconds. */
  readonly turnMs: number
  /** From the event before to `step/start`, mean, in milliseconds: the barrier of a step as a log shows it. */
  readonly stepGapMs: number
}

/** One variant, ready to play turns. */
export class Stand {
  readonly variant: Variant
  readonly #harness: Harness
  readonly #meter: WaitMeter
  readonly #stage: Stage

  private constructor(variant: Variant, harness: Harness, meter: WaitMeter, stage: Stage) {
    this.variant = variant
    this.#harness = harness
    this.#meter = meter
    this.#stage = stage
  }

  /** @param root - folder of its logs; not there yet. */
  static async create(variant: Variant, root: string, parts: OptionalParts): Promise<Stand> {
    const meter = new WaitMeter()
    const stage = new Stage()
    const body = (_args: unknown, { callId }: { readonly callId: string }) => stage.body(callId)
    const harness = await createHarness({
      root,
      compression: variant.encoding === 'raw' ? 'none' : 'zstd',
      writeBatchMaxDelayMs: variant.delayMs,
      ...(variant.encoding === 'sqlite' ? { persistence: parts.sqlite } : {}),
      maxParallelToolCalls: MAX_PARALLEL,
      tools: [createTool(PARALLEL_TOOL, body, { parallel: true }), createTool(SERIAL_TOOL, body)],
      plugins: [[meter.outer], ...pluginsOf(variant.strategy, parts), [meter.inner], [stage.plugin]],
    })
    return new Stand(variant, harness, meter, stage)
  }

  /**
   * Play a turn in a session of its own. The file exists before it is measured: making one costs more than an append.
   * @throws when the turn does not complete, a full disk for one.
   */
  async measure(script: TurnScript): Promise<Measured> {
    const { ctx, model } = this.#harness
    const { agent, dispose } = await this.#harness.createAgent()
    const { session } = agent
    try {
      this.#stage.set(ctx, session, NOTHING)
      await this.#harness.say(agent, 'begin')
      await ctx.sessions.flush(session)
      this.#stage.set(ctx, session, script)
      model.replace(script.steps.map((step, index) => () => answerOf(step, index, (pause) => this.#stage.pause(pause))))
      this.#meter.reset()
      await this.#harness.say(agent, filler(script.userBytes))
      const waits = this.#meter.read()
      await ctx.sessions.flush(session)
      if (this.#stage.ending !== 'completed')
        throw new Error(`a turn of ${nameOf(this.variant)} ended as ${this.#stage.ending}`)
      return { ...waits, turnMs: this.#stage.turnMs, stepGapMs: this.#stage.stepGapMs / script.steps.length }
    } finally {
      await dispose()
    }
  }

  /** Stop the application. */
  dispose(): Promise<void> {
    return this.#harness.dispose()
  }
}

/** Longest list of calls that may overlap. */
const MAX_PARALLEL = 32
const NOTHING: TurnScript = { userBytes: 0, steps: [] }

/** What happens in the application besides the policy: pauses, sizes, and the bounds of the turn. */
class Stage {
  turnMs = 0
  stepGapMs = 0
  ending = 'nothing'
  #script = NOTHING
  #ctx: Context | undefined
  #session: Session | undefined
  #startedAt = 0
  #eventAt = 0
  #step = -1

  readonly plugin = {
    name: 'stage',
    apply: (ctx: Context): void => {
      ctx.on('agent/request', async ({ agent }, next) => {
        this.#step += 1
        const step = this.#script.steps[this.#step]
        if (step !== undefined && step.extraBytes > 0) {
          // An event that says nothing to the model, for whatever the recorded host appended here.
          agent.session.append('todo/write', { todos: [{ content: filler(step.extraBytes), status: 'pending' }] })
        }
        if (step !== undefined) await this.pause(step.assembly)
        return next()
      })
      ctx.on('session/event', (_session, event) => {
        const now = performance.now()
        if (event.type === 'step/start') this.stepGapMs += now - this.#eventAt
        this.#eventAt = now
        if (event.type === 'turn/start') this.#startedAt = now
        if (event.type !== 'turn/end') return
        this.turnMs = now - this.#startedAt
        this.ending = event.data.reason.kind
      })
    },
  }

  /** Take up the next turn. */
  set(ctx: Context, session: Session, script: TurnScript): void {
    this.#ctx = ctx
    this.#session = session
    this.#script = script
    this.#step = -1
    this.stepGapMs = 0
    this.ending = 'nothing'
  }

  async pause({ ms, written }: Pause): Promise<void> {
    if (written === true && this.#session !== undefined) await this.#ctx?.sessions.flush(this.#session)
    if (ms > 0) await delay(ms)
  }

  async body(callId: string): Promise<string> {
    for (const [step, { calls }] of this.#script.steps.entries()) {
      const call = calls.find((_, index) => callIdOf(step, index) === callId)
      if (call === undefined) continue
      await this.pause(call.body)
      return filler(call.resultBytes)
    }
    return ''
  }
}
