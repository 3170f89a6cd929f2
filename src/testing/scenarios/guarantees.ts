/** Ordinary turns on a disk that works: every effect after its record, nothing waits long, nothing is left open. */
import { setImmediate as immediate } from 'node:timers/promises'
import { checkAll } from '../checks.ts'
import type { Findings } from '../report.ts'
import { Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'

const TURNS = 2

export async function guarantees(subject: Subject, findings: Findings): Promise<void> {
  await Stage.run(subject, findings, async (stage) => {
    // One turn of the event loop: a write that is only started is never there in time by luck.
    stage.disk.door = () => immediate()
    for (let turn = 0; turn < TURNS; turn += 1) await stage.turn()
    await checkAll(stage, { prompt: true })
    const { requests } = stage
    if (requests !== 4 * TURNS || stage.ran.length !== 7 * TURNS) {
      findings.add(
        'incomplete',
        `${TURNS} turns should make ${4 * TURNS} requests and ${7 * TURNS} calls; there were ${requests} and ${stage.ran.length}`,
      )
    }
  })
}
