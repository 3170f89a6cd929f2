/** The strategy is unmounted while a write hangs, at every append in turn; then the write ends well or badly. */
import { checkAll } from '../checks.ts'
import { storageError } from '../disk.ts'
import type { Findings } from '../report.ts'
import { LIMIT_MS, Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'
import { eventually, within } from '../wait.ts'
import { countAppends } from './failures.ts'

export async function disposal(subject: Subject, findings: Findings): Promise<void> {
  const appends = await countAppends(subject, findings)
  for (let hung = 1; hung <= appends && findings.of('disposal').length === 0; hung += 1) {
    for (const end of ['resolves', 'rejects'] as const) {
      await Stage.run(subject, findings, (stage) => unmountAt(stage, hung, end))
    }
  }
}

async function unmountAt(stage: Stage, hung: number, end: 'resolves' | 'rejects'): Promise<void> {
  const { findings, disk } = stage
  const held = Promise.withResolvers<void>()
  disk.door = ({ number }) => (number === hung ? held.promise : undefined)
  const turn = stage.startTurn()
  await eventually(LIMIT_MS, () => disk.appends.length >= hung)
  await within(
    LIMIT_MS,
    `unmounting the strategy while append ${hung} hangs`,
    Promise.resolve(stage.strategy?.dispose()),
  )
  if (end === 'resolves') held.resolve()
  else held.reject(storageError('EIO'))
  await within(LIMIT_MS, `the turn after the strategy was unmounted while append ${hung} hung`, turn)
  const { strategy } = stage.harness.ctx.checkpoints.state()
  if (strategy !== 'default')
    findings.add('stays', `unmounted while append ${hung} hung, the strategy "${strategy}" is still followed`)
  disk.door = undefined
  await stage.turn()
  await checkAll(stage, { prompt: false })
}
