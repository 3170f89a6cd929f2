/** Random orders of what can happen at once: appends, refusals, cancellations, title requests, the strategy swapped. */
import { MODEL, PROVIDER } from '../harness.ts'
import { checkAll } from '../checks.ts'
import { storageError } from '../disk.ts'
import { Findings } from '../report.ts'
import { LIMIT_MS, Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'
import { within } from '../wait.ts'

const EVENTS = ['cancel', 'refuse', 'swap', 'title', 'say'] as const
type Happening = (typeof EVENTS)[number]
const MAX_HAPPENINGS = 6

export async function interleavings(subject: Subject, findings: Findings): Promise<void> {
  const fc = await importFastCheck()
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(fc.constantFrom(...EVENTS), { maxLength: MAX_HAPPENINGS }),
    async (scheduler, happenings) => {
      const found = new Findings()
      found.scenario = 'interleavings'
      await Stage.run(subject, found, (stage) => interleave(stage, scheduler, happenings))
      if (found.count > 0)
        throw new Error(
          found
            .all()
            .map(({ message }) => message)
            .join('\n'),
        )
    },
  )
  // Shrinking would run hundreds of apps; the seed and the path repeat this very order.
  const result = await fc.check(property, { seed: subject.seed, numRuns: subject.rounds, endOnFailure: true })
  if (!result.failed) return
  const [, happenings] = result.counterexample ?? []
  findings.add(
    'interleaving',
    `${result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance)}\n` +
      `      in round ${result.numRuns} with ${JSON.stringify(happenings)}; repeat it with seed: ${result.seed} ` +
      `(fast-check path "${result.counterexamplePath}")`,
  )
}

/** What is used of fast-check's scheduler. */
interface Scheduler {
  schedule<T>(task: Promise<T>, label?: string): Promise<T>
  waitFor<T>(task: Promise<T>): Promise<T>
}

async function interleave(stage: Stage, scheduler: Scheduler, happenings: readonly Happening[]): Promise<void> {
  const { disk, agent } = stage
  let refusing = 0
  disk.door = async ({ number }) => {
    await scheduler.schedule(Promise.resolve(), `append ${number}`)
    if (refusing === 0) return
    refusing -= 1
    throw storageError('EIO')
  }
  const happened = happenings.map(async (happening) => {
    await scheduler.schedule(Promise.resolve(), happening)
    switch (happening) {
      case 'cancel':
        agent.cancel({ kind: 'user' })
        break
      case 'refuse':
        refusing += 1
        break
      case 'swap':
        await stage.swapStrategy()
        break
      case 'title':
        await requestTitle(stage)
        break
      case 'say':
        stage.mention()
        break
    }
  })
  const all = Promise.all([stage.startTurn(), ...happened]).then(() => stage.quiet())
  await within(LIMIT_MS, `a turn with ${JSON.stringify(happenings)} in between`, scheduler.waitFor(all))
  disk.door = undefined
  const after = async () => {
    await agent.whenIdle()
    await stage.turn()
    await checkAll(stage, { prompt: false })
  }
  // A cancelled barrier leaves its write behind at the door: the scheduler still has to let it in.
  await scheduler.waitFor(after())
}

/** A request of the session beside its conversation. A refusal is an answer, too. */
async function requestTitle({ harness, agent }: Stage): Promise<void> {
  const request = {
    provider: PROVIDER,
    model: MODEL,
    messages: [],
    sessionId: agent.session.id,
    purpose: 'session-title',
  }
  try {
    for await (const chunk of harness.ctx.llm.stream(request as never)) void chunk
  } catch {
    // The injected refusal, as the caller of a title sees it; everything else shows in the checks.
  }
}

async function importFastCheck(): Promise<typeof import('fast-check')> {
  try {
    return await import('fast-check')
  } catch (error) {
    throw new Error(`the scenario "interleavings" needs fast-check: npm install --save-dev fast-check`, {
      cause: error,
    })
  }
}
