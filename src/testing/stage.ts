/** An app under test: the real harness, a disk with a door, and eyes at every effect. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context, Fiber } from '@deepseek-ai/cordis'
import type { Agent } from '@deepseek-ai/dsh-agent'
import { createUserMessage } from '@deepseek-ai/dsh-llm'
import type { SettledBarrier } from '../barrier.ts'
import * as policy from '../index.ts'
import { Disk } from './disk.ts'
import { createHarness, createTool, ScriptedModel, type Harness, type ScriptedAnswer } from './harness.ts'
import type { Findings } from './report.ts'
import type { Subject } from './subject.ts'
import { describeError, eventually, OverdueError, within } from './wait.ts'

/** Longest time a turn, or a step of a scenario, may take. */
export const LIMIT_MS = 5_000
/** Longest time that mounting the strategy may take. */
const MOUNT_LIMIT_MS = 2_000
/** Longest time spent on taking down an app that never got up. */
const ABANDON_LIMIT_MS = 500
const KEPT_RECORDS = 10_000

/** One app, one agent, one strategy. */
export class Stage {
  readonly subject: Subject
  readonly findings: Findings
  readonly disk = new Disk()
  readonly records: SettledBarrier[] = []
  /** Ids of the calls whose body began. */
  readonly ran: string[] = []
  /** Requests that reached the adapter. */
  requests = 0
  /** Called when a body begins, after it was checked. */
  onBody: ((callId: string) => void | Promise<void>) | undefined
  harness!: Harness
  agent!: Agent
  /** The mounted strategy. */
  strategy: Fiber | undefined
  #root = ''
  #calls = 0
  #swapping = Promise.resolve()

  private constructor(subject: Subject, findings: Findings) {
    this.subject = subject
    this.findings = findings
  }

  /** Put an app together and mount the strategy. */
  static async create(subject: Subject, findings: Findings): Promise<Stage> {
    const stage = new Stage(subject, findings)
    stage.#root = await mkdtemp(join(tmpdir(), 'dsh-strategy-'))
    const body = (_args: unknown, exec: { readonly callId: string }) => stage.#body(exec.callId)
    stage.harness = await createHarness({
      root: stage.#root,
      compression: 'none',
      persistence: stage.disk.plugin,
      model: new ScriptedModel(),
      tools: [createTool(subject.exclusive, body), createTool(subject.parallel, body, { parallel: true })],
      plugins: [[policy, subject.policy]],
    })
    try {
      await stage.mountStrategy()
      stage.#watch(stage.harness.ctx)
      const { agent } = await stage.harness.createAgent()
      // A new session first looks for its file; appends are counted from after that.
      await stage.harness.ctx.sessions.flush(agent.session)
      stage.agent = agent
      return stage
    } catch (error) {
      // What failed first says more than an app that can then not be disposed.
      await stage.dispose(ABANDON_LIMIT_MS).catch(() => undefined)
      throw error
    }
  }

  /** Run `act` on a stage of its own; whatever it throws becomes a finding. */
  static async run(subject: Subject, findings: Findings, act: (stage: Stage) => Promise<void>): Promise<void> {
    let stage: Stage | undefined
    try {
      stage = await Stage.create(subject, findings)
      await act(stage)
    } catch (error) {
      findings.add('threw', error instanceof OverdueError ? error.message : `unexpected error: ${describeError(error)}`)
    }
    try {
      await stage?.dispose()
    } catch (error) {
      findings.add('dispose', `the app could not be disposed: ${describeError(error)}`)
    }
  }

  async mountStrategy(): Promise<void> {
    const { plugin, config } = this.subject
    this.strategy = await within(MOUNT_LIMIT_MS, 'mounting the strategy', this.harness.mount(plugin, config))
  }

  /** Unmount the strategy and mount it again; concurrent swaps queue up. */
  swapStrategy(): Promise<void> {
    const swap = async () => {
      await this.strategy?.dispose()
      await this.mountStrategy()
    }
    this.#swapping = this.#swapping.then(swap)
    return this.#swapping
  }

  /** One more message for the agent, now. */
  mention(): void {
    const content = [{ type: 'text', text: 'one more thing' }] as const
    this.agent.followup(createUserMessage({ content: [...content], source: { kind: 'user' } }))
  }

  /** A turn in which every boundary occurs: exclusive and parallel calls, in three steps. */
  async turn(): Promise<void> {
    await within(LIMIT_MS, 'a turn', this.startTurn())
  }

  /** Like {@link turn}, without a limit; the script is renewed for each turn. */
  startTurn(): Promise<void> {
    const { exclusive, parallel } = this.subject
    const call = (name: string) => ({ name, id: `call-${(this.#calls += 1)}` })
    const script: ScriptedAnswer[] = [
      [call(exclusive)],
      [call(parallel), call(parallel), call(parallel)],
      [call(exclusive), call(parallel), call(parallel)],
      'done',
    ]
    this.harness.model.replace(script)
    return this.harness.say(this.agent, 'go')
  }

  /** Whether no barrier is left open within the limit. */
  quiet(): Promise<boolean> {
    return eventually(LIMIT_MS, () => this.harness.ctx.checkpoints.open().length === 0)
  }

  /** Events of the live session. */
  events(): readonly { type: string; seq: number; data: Record<string, unknown> }[] {
    const session = this.agent.session as { snapshotEvents?(): unknown; events?: unknown }
    return (session.snapshotEvents?.() ?? session.events) as never
  }

  /** Lines of the log as they are in the file. */
  async log(): Promise<string[]> {
    const path = this.disk.files.get(this.agent.session.id)
    if (path === undefined) return []
    return (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
  }

  async dispose(limitMs = LIMIT_MS): Promise<void> {
    this.disk.door = undefined
    try {
      await within(limitMs, 'disposing the app', this.harness.dispose())
    } finally {
      await rm(this.#root, { recursive: true, force: true })
    }
  }

  #watch(ctx: Context): void {
    ctx.checkpoints.observe((record) => {
      if (record.kind === 'barrier') this.records.push(record)
      if (this.records.length > KEPT_RECORDS) this.records.shift()
    })
    const seqAtHook = new WeakMap<object, number>()
    ctx.on(
      'llm/stream',
      (options, next) => {
        seqAtHook.set(options, this.agent.session.seq)
        return next()
      },
      { prepend: true },
    )
    // Registered after the policy, so inside it: this runs when the policy releases the request.
    ctx.on('llm/stream', (options, next) => {
      this.requests += 1
      const durable = this.disk.durableSeq(this.agent.session.id)
      const needed = seqAtHook.get(options) ?? 0
      if (durable < needed) {
        this.findings.add(
          'request before durability',
          `a request reached the model while ${needed - durable} event(s) recorded ahead of it were not on disk` +
            this.#decided((record) => record.boundary === 'request'),
        )
      }
      return next()
    })
  }

  #body(callId: string): void | Promise<void> {
    this.ran.push(callId)
    const name = this.events().find(({ type, data }) => type === 'tool/call' && data['callId'] === callId)?.data['name']
    if (!this.subject.mayRelease.has(String(name)) && !this.disk.holdsCall(this.agent.session.id, callId)) {
      this.findings.add(
        'effect before durability',
        `the body of tool "${String(name)}" began before its call was on disk: a crash now would forget that it ran` +
          this.#decided((record) => record.callId === callId),
      )
    }
    return this.onBody?.(callId)
  }

  /** What the strategy had answered, for a finding. */
  #decided(matches: (record: SettledBarrier) => boolean): string {
    const record = this.records.findLast(matches)
    if (record === undefined) return ''
    return (
      `; the strategy answered "${record.decision}" at \`${record.boundary}\`` +
      (record.reason === undefined ? '' : ` (${record.reason})`)
    )
  }
}
