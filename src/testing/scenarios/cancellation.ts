/** The disk hangs at every append in turn and the agent is cancelled: it must stop, and nothing may run. */
import { checkAll } from '../checks.ts'
import type { Findings } from '../report.ts'
import { LIMIT_MS, Stage } from '../stage.ts'
import { countAppends } from './failures.ts'
import type { Subject } from '../subject.ts'
import { eventually, within } from '../wait.ts'

export async function cancellation(subject: Subject, findings: Findings): Promise<void> {
  const appends = await countAppends(subject, findings)
  for (let hung = 1; hung <= appends && findings.of('cancellation').length === 0; hung += 1) {
    await Stage.run(subject, findings, (stage) => cancelAt(stage, hung))
  }
}

async function cancelAt(stage: Stage, hung: number): Promise<void> {
  const { findings, disk, agent } = stage
  const { checkpoints } = stage.harness.ctx
  const held = Promise.withResolvers<void>()
  disk.door = ({ number }) => (number >= hung ? held.promise : undefined)
  let ended = false
  const turn = stage.startTurn().finally(() => {
    ended = true
  })
  const isStuck = () => ended || (disk.appends.length >= hung && checkpoints.open().some(({ waiting }) => waiting))
  if (!(await eventually(LIMIT_MS, isStuck))) {
    findings.add('unguarded hang', `append ${hung} hangs, and the agent neither waits for it nor ends its turn`)
  }
  const ran = stage.ran.length
  const { requests } = stage
  agent.cancel({ kind: 'user' })
  try {
    await within(LIMIT_MS, `cancelling while append ${hung} hangs`, turn)
  } catch (error) {
    findings.add('unstoppable', (error as Error).message)
  }
  if (stage.ran.length !== ran || stage.requests !== requests) {
    findings.add(
      'ran after cancel',
      `after it was cancelled while append ${hung} hung, the agent went on to a tool body or a request`,
    )
  }
  held.resolve()
  disk.door = undefined
  await within(LIMIT_MS, 'the cancelled turn', turn)
  await stage.turn()
  await checkAll(stage, { prompt: false })
}
