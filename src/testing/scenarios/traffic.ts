/** Events keep arriving faster than any delay: a barrier must not wait for silence. */
import { checkAll } from '../checks.ts'
import type { Findings } from '../report.ts'
import { Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'

/** Well above the time of one write: the host itself writes until nothing is left. */
const EVERY_MS = 10
const TURNS = 20

export async function traffic(subject: Subject, findings: Findings): Promise<void> {
  await Stage.run(subject, findings, async (stage) => {
    const { session } = stage.agent
    const timer = setInterval(() => session.append('todo/write', { todos: [] }), EVERY_MS)
    try {
      for (let turn = 0; turn < TURNS; turn += 1) await stage.turn()
    } finally {
      clearInterval(timer)
    }
    await checkAll(stage, { prompt: true })
  })
}
