/**
 * The policy broken on purpose, one way each. The tests named with a mutant must be red on it; all others may be.
 * A patch that no longer matches the source exactly once is an error: the mutant is then to be written anew.
 */

/** One replacement in one file below `src/`. */
export interface Patch {
  readonly file: string
  readonly from: string
  readonly to: string
}

/** One broken policy. */
export interface Mutant {
  /** What is broken, in words; the key in the reports. */
  readonly name: string
  readonly patches: readonly Patch[]
  /** Spec file below `test/`, and the beginnings of titles (without the number of a field case) that must be red. */
  readonly spec: string
  readonly tests: readonly string[]
}

const TOOL_WAIT = `    if (barrier.ready !== undefined) await barrier.ready
    if (!checkpoint.settle(barrier)) return abortedBeforeDispatch()
`
const TOOL_OPEN = `    const barrier = checkpoint.open(subject, ledger, exec.signal, telemetry.parent(ledger))
`
const TOOL_RUN = `    return telemetry.run(barrier.parent, next)
  })

  // step:`

/** All of them. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the flush of a call comes after its body',
    patches: [
      { file: 'index.ts', from: TOOL_OPEN, to: `    const result = await next()\n${TOOL_OPEN}` },
      { file: 'index.ts', from: TOOL_RUN, to: TOOL_RUN.replace('telemetry.run(barrier.parent, next)', 'result') },
    ],
    spec: 'guarantees.spec.ts',
    tests: ['a tool body runs only after its recorded call is durable', 'a tool body runs after one flush of its own'],
  },
  {
    name: 'the flush of a call is not awaited',
    patches: [{ file: 'index.ts', from: TOOL_WAIT, to: TOOL_WAIT.split('\n').slice(1).join('\n') }],
    spec: 'guarantees.spec.ts',
    tests: ['a tool body runs only after its recorded call is durable', 'a tool body runs after one flush of its own'],
  },
  {
    name: 'the flush of a request is not awaited',
    patches: [{ file: 'stream.ts', from: '    await this.#opened.ready\n', to: '' }],
    spec: 'guarantees.spec.ts',
    tests: ['request and step wait for a flush each before the adapter is called'],
  },
  {
    name: 'the flush of a step is not awaited',
    patches: [
      {
        file: 'index.ts',
        from: '    if (barrier.ready !== undefined) await barrier.ready\n    // The loop looks',
        to: '    // The loop looks',
      },
    ],
    spec: 'guarantees.spec.ts',
    tests: ['a rejected flush at step fails the turn before another request'],
  },
  {
    name: 'a rejection is swallowed',
    patches: [
      {
        file: 'checkpoint.ts',
        from: 'return this.#reject(barrier, errorTypeOf(barrier.flush.error), barrier.flush.error)',
        to: `this.#close(barrier, 'dispatched', errorTypeOf(barrier.flush.error))\n          return true`,
      },
    ],
    spec: 'guarantees.spec.ts',
    tests: ['a rejected flush at request lets no adapter be called', 'a rejected flush at tool lets no body run'],
  },
  {
    name: 'an abort is not seen while the flush is pending',
    patches: [{ file: 'live-barrier.ts', from: `else this.signal?.addEventListener('abort', this)`, to: '' }],
    spec: 'cancellation.spec.ts',
    tests: ["a call cancelled at its barrier gets the host's own"],
  },
  {
    name: 'an abort in the tick in which the flush ends is ignored',
    patches: [
      {
        file: 'checkpoint.ts',
        from: '        if (barrier.signal?.aborted === true) {',
        to: '        if (barrier.signal === null) {',
      },
    ],
    spec: 'cancellation.spec.ts',
    tests: ['a cancellation in the tick in which the flush ends'],
  },
  {
    name: 'the abort listener stays on the signal',
    patches: [{ file: 'live-barrier.ts', from: `    this.signal?.removeEventListener('abort', this)\n`, to: '' }],
    spec: 'cancellation.spec.ts',
    tests: ['a thousand calls and a thousand rejected ones'],
  },
  {
    name: 'an abort is counted as a rejection',
    patches: [
      {
        file: 'checkpoint.ts',
        from: `        this.#close(barrier, 'aborted')\n        return false\n      case 'timeout':`,
        to: `        this.#close(barrier, 'rejected')\n        return false\n      case 'timeout':`,
      },
    ],
    spec: 'telemetry.spec.ts',
    tests: ['each outcome is counted once'],
  },
  {
    name: 'each barrier is counted twice',
    patches: [
      {
        file: 'telemetry.ts',
        from: '    instruments.barrierDuration.record(',
        to: '    for (let i = 0; i < 2; i += 1) instruments.barrierDuration.record(',
      },
    ],
    spec: 'telemetry.spec.ts',
    tests: ['each outcome is counted once'],
  },
  {
    name: 'an unconfirmed flush counts as durable',
    patches: [
      {
        file: 'ledger.ts',
        from: `confirmed === false ? 'unconfirmed' : 'durable'`,
        to: `confirmed === null ? 'unconfirmed' : 'durable'`,
      },
    ],
    spec: 'guarantees.spec.ts',
    tests: ['requireConfirmed rejects a flush in which no backend took part'],
  },
  {
    name: 'the late end of a flush counts its barrier again',
    patches: [
      {
        file: 'checkpoint.ts',
        from: '    if (!this.#open.delete(barrier)) return\n',
        to: '    this.#open.delete(barrier)\n',
      },
      {
        file: 'checkpoint.ts',
        from: `for (const barrier of barriers) barrier.wake('flush')`,
        to: `for (const barrier of barriers) {
          barrier.wake('flush')
          if (barrier.outcome !== undefined) this.#close(barrier, barrier.outcome)
        }`,
      },
    ],
    spec: 'telemetry.spec.ts',
    tests: ['a late settle adds no sample'],
  },
  {
    name: 'the end of a turn waits for its flush',
    patches: [
      {
        file: 'index.ts',
        from: `  ctx.on('session/event', `,
        to: `  ctx.on('agent/turn-stopping', async ({ agent }) => void (await host.flush(agent.session)))\n  ctx.on('session/event', `,
      },
    ],
    spec: 'turn.spec.ts',
    tests: ['the agent is idle while the write of its turn still runs'],
  },
  {
    name: 'a nested call flushes, too',
    patches: [
      {
        file: 'index.ts',
        from: 'exec.parent !== undefined) return next()\n    const ledger = checkpoint.ledger(agent.session)\n    ledger.agentId = agent.id\n',
        to: 'agent === null) return next()\n    const ledger = checkpoint.ledger(agent.session)\n    ledger.agentId = agent.id\n',
      },
    ],
    spec: 'guarantees.spec.ts',
    tests: ["a nested call reuses the outer call's barrier"],
  },
  {
    name: 'a stream that was not pulled before the unload runs after it',
    patches: [
      {
        file: 'checkpoint.ts',
        from: `barrier.wake(this.#unloaded ? 'unloaded' : 'aborted')`,
        to: `if (!this.#unloaded) barrier.wake('aborted')`,
      },
    ],
    spec: 'unload.spec.ts',
    tests: ['a stream that was made but not pulled when the policy is unloaded'],
  },
  {
    name: 'a barrier that waits at the unload is left waiting',
    patches: [{ file: 'checkpoint.ts', from: `barrier.wake('unloaded')\n      else`, to: `continue\n      else` }],
    spec: 'unload.spec.ts',
    tests: ['a call whose flush is held when the policy is unloaded'],
  },
  {
    name: 'a strategy may release a guarded call unasked',
    patches: [
      {
        file: 'checkpoint.ts',
        from: `pendingEvents > 0 && !this.#config.allowUnguarded`,
        to: `pendingEvents < 0 && !this.#config.allowUnguarded`,
      },
    ],
    spec: 'seam.spec.ts',
    tests: ['${decision.kind} at a guarded boundary with events pending becomes flush'],
  },
  {
    name: 'a strategy that throws means no flush',
    patches: [
      {
        file: 'checkpoint.ts',
        from: `        barrier.overruled = 'threw'\n`,
        to: `        barrier.overruled = 'threw'\n        decision = MOOT\n`,
      },
    ],
    spec: 'seam.spec.ts',
    tests: ['a strategy that throws means flush'],
  },
  {
    name: 'a span stays open when its barrier is aborted',
    patches: [
      {
        file: 'telemetry.ts',
        from: '      if (barrier.span !== undefined) endSpan',
        to: `      if (barrier.span !== undefined && barrier.outcome !== 'aborted') endSpan`,
      },
    ],
    spec: 'telemetry.spec.ts',
    tests: ['only rejected and timed-out barriers are errors'],
  },
  {
    name: 'the housekeeping timer outlives the policy',
    patches: [{ file: 'index.ts', from: '      clearInterval(timer)\n', to: '' }],
    spec: 'lifecycle.spec.ts',
    tests: ['${ROUNDS} rounds of plugins that come and go'],
  },
  {
    name: 'the endpoint goes on trying for its port after it was closed',
    patches: [{ file: 'http/server.ts', from: '    clearTimeout(this.#retry)\n', to: '' }],
    spec: 'prometheus-lifecycle.spec.ts',
    tests: ['disposed between two attempts'],
  },
  {
    name: 'the message of a rejection is on the span',
    patches: [
      {
        file: 'telemetry.ts',
        from: '{ code: SpanStatusCode.ERROR }',
        to: '{ code: SpanStatusCode.ERROR, message: String(barrier.flush?.error) }',
      },
    ],
    spec: 'security.spec.ts',
    tests: ['prompts, arguments, results, messages of errors', 'spans hold the documented ids and names'],
  },
  {
    name: 'the message of a rejection is in the log',
    patches: [
      {
        file: 'checkpoint.ts',
        from: '} failed: ${errorType}`',
        to: '} failed: ${errorType} ${String(barrier.flush?.error)}`',
      },
    ],
    spec: 'security.spec.ts',
    tests: ['prompts, arguments, results, messages of errors'],
  },
  {
    name: 'the endpoint of the collector is logged with its credentials',
    patches: [{ file: 'node-sdk.ts', from: 'originOf(endpoint)', to: 'endpoint' }],
    spec: 'security.spec.ts',
    tests: ['prompts, arguments, results, messages of errors'],
  },
]
