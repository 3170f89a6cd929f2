import { describe, expect, test } from 'vitest'
import { isContiguous } from '../src/cli/session-log.ts'
import { createHarness } from '../src/testing/harness.ts'
import { DISK_FAULTS, type DiskFault } from './sweep/disk-faults.ts'
import { callsOf, findLog, readOutside } from './sweep/outside.ts'
import { SESSION } from './sweep/plan.ts'
import { RemoteAgent } from './sweep/remote-agent.ts'
import { canLoop, canMount } from './sweep/volume.ts'

/** The log on disk, which must be whole. */
function wholeLog(root: string) {
  const { events, torn } = readOutside(findLog(root, SESSION) ?? '')
  expect([isContiguous(events), torn]).toEqual([true, 0])
  return events
}

async function expectResumable(root: string, compression: 'none' | 'zstd'): Promise<void> {
  const harness = await createHarness({ root, compression })
  try {
    const { agent } = await harness.resumeAgent(SESSION)
    await harness.say(agent, 'go on')
    expect(agent.session.events.at(-1)?.data).toMatchObject({ reason: { kind: 'completed' } })
  } finally {
    await harness.dispose()
  }
}

describe.each(DISK_FAULTS)('$name ($code)', ({ code, later = code, told = code, needs, create }: DiskFault) => {
  test.runIf(needs === 'loop' ? canLoop : canMount).each(['none', 'zstd'] as const)(
    'refuses tool and turn while it lasts, says so to model, metrics and operator, and heals by itself (%s)',
    async (compression) => {
      const disk = create()
      const agent = await RemoteAgent.start({ root: disk.root, compression, ...disk.plan })
      const healthy = await agent.turn({ calls: [{ name: 'write', id: 'before' }] }, {})
      expect([healthy.turn, healthy.bodies]).toEqual(['completed', ['before']])

      // It breaks between the request and the call that the model answers with.
      await agent.begin({ pause: true, calls: [{ name: 'write', id: 'refused' }] })
      await agent.watch(({ requests }) => requests.length > 0)
      disk.break(agent)
      await agent.order({ kind: 'proceed' })
      const refused = await agent.settled()
      expect([refused.turn, refused.bodies, refused.requests]).toEqual(['error', [], []])
      expect(refused.results['refused']).toContain(told)
      expect(
        refused.barriers
          .filter((record) => record.errorType !== undefined)
          .map((record) => [record.boundary, record.outcome, record.errorType]),
      ).toEqual([
        ['tool', 'rejected', code],
        ['step', 'rejected', later],
        ['turn', 'dispatched', later],
      ])
      expect(refused.state.consecutiveFailures).toBe(3)
      expect(refused.state.unflushedOldestAgeMs).toBeGreaterThan(0)
      const lines = refused.logs.filter((line) => / failed: E/.test(line))
      expect(lines.map((line) => /checkpoint (\w+)/.exec(line)?.[1])).toEqual(['tool', 'step', 'turn'])

      const again = await agent.turn({ calls: [{ name: 'write', id: 'never' }] })
      expect([again.turn, again.bodies, again.requests]).toEqual(['error', [], []])

      disk.mend(agent)
      const mended = await agent.turn({ calls: [{ name: 'write', id: 'after' }] }, {})
      expect([mended.turn, mended.bodies]).toEqual(['completed', ['after']])
      expect(mended.requests[0]).toContain(told)
      expect(mended.barriers.filter((record) => record.errorType !== undefined || record.unguarded)).toEqual([])
      const { state, events, logs } = mended
      expect([state.consecutiveFailures, state.unflushedOldestAgeMs]).toEqual([0, 0])
      expect(logs.filter((line) => line.startsWith('UNHANDLED'))).toEqual([])
      const log = wholeLog(disk.root)
      expect(log).toHaveLength(events)
      expect([...callsOf(log)]).toEqual(['before', 'refused', 'after'])
      await agent.order({ kind: 'dispose' })
      await expectResumable(disk.root, compression)
    },
  )
})
