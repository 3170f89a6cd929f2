/** Every append of a turn fails in turn, once and until the disk is repaired: nothing runs, nothing stays broken. */
import { checkAll } from '../checks.ts'
import { storageError } from '../disk.ts'
import type { Findings } from '../report.ts'
import { Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'

export async function failures(subject: Subject, findings: Findings): Promise<void> {
  const appends = await countAppends(subject, findings)
  for (let failing = 1; failing <= appends && findings.of('failures').length === 0; failing += 1) {
    for (const lasting of [false, true]) {
      await Stage.run(subject, findings, (stage) => failAt(stage, failing, lasting))
    }
  }
}

/** Appends of one turn under the strategy, its end included. */
export async function countAppends(subject: Subject, findings: Findings): Promise<number> {
  let appends = 0
  await Stage.run(subject, findings, async (stage) => {
    await stage.turn()
    await stage.quiet()
    appends = stage.disk.appends.length
  })
  return appends
}

async function failAt(stage: Stage, failing: number, lasting: boolean): Promise<void> {
  const { findings, disk } = stage
  const how = `append ${failing} of a turn ${lasting ? 'and all after it fail' : 'fails once'}`
  let failed = 0
  disk.door = ({ number }) => {
    if (lasting ? number < failing : number !== failing) return
    failed += 1
    throw storageError('ENOSPC')
  }
  await stage.turn()
  await stage.quiet()
  if (failed > 0 && !stage.records.some(({ errorType }) => errorType === 'ENOSPC')) {
    findings.add('silent', `${how}, and no barrier tells of it: the strategy leaves the write to nobody`)
  }
  disk.door = undefined
  const { requests } = stage
  await stage.turn()
  if (stage.requests !== requests + 4)
    findings.add('latched', `${how}, and after the disk was repaired the next turn does not run through`)
  await checkAll(stage, { prompt: false })
}
