/** The test's end of an agent in a process of its own. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { Answer, Order, RemotePlan, Sight } from './remote-protocol.ts'

const CHILD = fileURLToPath(new URL('./remote-child.ts', import.meta.url))

/** An agent whose process, limits, user and disk are real. */
export class RemoteAgent {
  readonly process: ChildProcess

  private constructor(process: ChildProcess) {
    this.process = process
  }

  /** Start the process; resolves when its agent is idle and has nothing on disk. */
  static async start(plan: Partial<RemotePlan> & { readonly root: string }): Promise<RemoteAgent> {
    const full: RemotePlan = { compression: 'none', policy: {}, ...plan }
    const agent = new RemoteAgent(
      fork(CHILD, [JSON.stringify(full)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
    )
    onTestFinished(() => agent.kill())
    await agent.#sight()
    return agent
  }

  /** Run a turn to its end, and to the end of its last write. */
  async turn(...answers: readonly Answer[]): Promise<Sight> {
    const sight = await this.order({ kind: 'turn', answers })
    return merge(sight, await this.watch(({ open }) => open.length === 0))
  }

  /** Start a turn. */
  begin(...answers: readonly Answer[]): Promise<Sight> {
    return this.order({ kind: 'begin', answers })
  }

  /** Wait until the turn that was begun is over and no write of it is under way. */
  async settled(): Promise<Sight> {
    const sight = await this.order({ kind: 'settled' })
    return merge(sight, await this.watch(({ open }) => open.length === 0))
  }

  /** Give an order and wait until it was obeyed; one at a time. */
  async order(order: Order): Promise<Sight> {
    this.process.send(order)
    return this.#sight()
  }

  /** Look again and again until it sees what is asked for, and say everything that was seen on the way. */
  async watch(condition: (sight: Sight) => boolean): Promise<Sight> {
    let seen = await this.order({ kind: 'look' })
    for (;;) {
      if (condition(seen)) return seen
      seen = merge(seen, await this.order({ kind: 'look' }))
    }
  }

  /** kill -9; resolves when the process is gone. */
  async kill(): Promise<void> {
    const { process } = this
    if (process.exitCode !== null || process.signalCode !== null) return
    const gone = once(process, 'exit')
    process.kill('SIGKILL')
    await gone
  }

  async #sight(): Promise<Sight> {
    const waiting = new AbortController()
    const { signal } = waiting
    try {
      const message = once(this.process, 'message', { signal }) as Promise<[Sight]>
      const exit = once(this.process, 'exit', { signal }).then(([code, name]) => {
        throw new Error(`the agent process ended (code ${code}, ${name})`)
      })
      exit.catch(() => {})
      return (await Promise.race([message, exit]))[0]
    } finally {
      waiting.abort()
    }
  }
}

/** Two looks as one. */
function merge(first: Sight, then: Sight): Sight {
  return {
    ...then,
    bodies: [...first.bodies, ...then.bodies],
    requests: [...first.requests, ...then.requests],
    barriers: [...first.barriers, ...then.barriers],
    logs: [...first.logs, ...then.logs],
  }
}
