/** Agents that live, delegate, fail and die, and the disk under them. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import type { GenerateOptions, StreamChunk } from '@deepseek-ai/dsh-llm'
import { createTool, ScriptedModel, type Harness } from '../../src/testing/harness.ts'
import { createRandom } from '../../src/testing/wait.ts'
import type { Counts } from './soak-observer.ts'

/** Turns of an agent before another takes its place, so that no log grows without end. */
const TURNS = 4
const CANCEL_AFTER_MS = 300
const HANG_MS = 400

/** What is done to flushes, as shares of them. */
const FAULTS = { fails: 0.02, slow: 0.05, hangs: 0.003 } as const

/** The load of one run; everything random comes from one seed. */
export class SoakLoad {
  readonly model: ScriptedModel
  readonly tools
  readonly faults: object
  /** Faults injected, by kind. */
  readonly injected = { failed: 0, slow: 0, hung: 0, cancelled: 0 }
  turns = 0
  agents = 0
  harness!: Harness
  readonly #random: () => number
  readonly #root: string
  #stopped = false

  constructor(seed: number, root: string, counts: Counts) {
    const random = createRandom(seed)
    this.#random = random
    this.#root = root
    this.model = new SoakModel(random, counts)
    const body = async () => {
      counts.bodies += 1
      await sleep(random() * 3)
    }
    this.tools = [
      createTool('write', body),
      createTool('read', body, { parallel: true }),
      createTool('delegate', async () => {
        await body()
        await this.#life(1, 1)
      }),
    ]
    const { injected } = this
    this.faults = {
      name: 'soak-faults',
      apply(ctx: Context) {
        ctx.on('session/flush', async () => {
          const chance = random()
          if (chance < FAULTS.fails) {
            injected.failed += 1
            throw Object.assign(new Error('ENOSPC: injected by the soak'), { code: 'ENOSPC' })
          }
          if (chance < FAULTS.fails + FAULTS.hangs) {
            injected.hung += 1
            await sleep(HANG_MS)
          } else if (chance < FAULTS.fails + FAULTS.hangs + FAULTS.slow) {
            injected.slow += 1
            await sleep(random() * 50)
          }
        })
      },
    }
  }

  /** Keep `agents` of them alive until {@link stop}; resolves when the last one is gone. */
  async run(agents: number): Promise<void> {
    await Promise.all(
      Array.from({ length: agents }, async () => {
        while (!this.#stopped) await this.#life(0, TURNS)
      }),
    )
  }

  stop(): void {
    this.#stopped = true
  }

  async #life(delegationDepth: number, turns: number): Promise<void> {
    const id = `soak-${(this.agents += 1)}`
    const handle = await this.harness.createAgent(id, { delegationDepth })
    const { agent } = handle
    try {
      for (let turn = 0; turn < turns && !this.#stopped; turn += 1) {
        this.turns += 1
        const ended = this.harness.say(agent, 'go')
        if (this.#random() < 0.1) {
          this.injected.cancelled += 1
          await sleep(this.#random() * CANCEL_AFTER_MS)
          agent.cancel({ kind: 'user' } as never)
        }
        await ended
      }
    } finally {
      await handle.dispose()
      // The host writes the rest of a disposed session in the background; what comes after this goes with the whole folder.
      await rm(join(this.#root, '_no-cwd', id), { recursive: true, force: true }).catch(() => {})
    }
  }
}

/** Answers at random; subagents do not delegate again. */
class SoakModel extends ScriptedModel {
  readonly #random: () => number
  readonly #counts: Counts
  #calls = 0

  constructor(random: () => number, counts: Counts) {
    super()
    this.#random = random
    this.#counts = counts
  }

  override stream(request: GenerateOptions): AsyncIterable<StreamChunk> {
    this.#counts.requests += 1
    const chance = this.#random()
    const call = (name: string) => ({ name, id: `call-${(this.#calls += 1)}` })
    if (chance < 0.35) return new ScriptedModel(['done']).stream(request)
    if (chance < 0.6) return new ScriptedModel([[call('write')]]).stream(request)
    if (chance < 0.95)
      return new ScriptedModel([[call('read'), call('read'), call('read'), call('write')]]).stream(request)
    return new ScriptedModel([[call('delegate')]]).stream(request)
  }
}
