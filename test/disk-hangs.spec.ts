import { describe, expect, test } from 'vitest'
import { isContiguous } from '../src/cli/session-log.ts'
import { callsOf, findLog, readOutside } from './sweep/outside.ts'
import { SESSION } from './sweep/plan.ts'
import { RemoteAgent } from './sweep/remote-agent.ts'
import type { RemotePlan } from './sweep/remote-protocol.ts'
import { canLoop, Volume } from './sweep/volume.ts'

/** How long the slow disk takes; 20 s in the nightly run. */
const SLOW_MS = Number(process.env['DSH_CHECKPOINT_SLOW_DISK_MS'] ?? 1_500)
const CALL = { name: 'write', id: 'hung' }
const coalesced = { module: new URL('../src/strategies/coalesced.ts', import.meta.url).href, config: {} }

/** An agent after one turn, on ext4 in a file, and its log afterwards. */
async function onVolume(plan: Partial<RemotePlan> = {}) {
  const below = Volume.tmpfs(16_384)
  const volume = Volume.ext4(`${below.path}/image`)
  const agent = await RemoteAgent.start({ root: volume.logs, ...plan })
  await agent.turn({})
  const log = () => {
    const { events, torn } = readOutside(findLog(volume.logs, SESSION) ?? '')
    expect([isContiguous(events), torn]).toEqual([true, 0])
    return events
  }
  return { volume, agent, log }
}

/** The model is asked; then the disk hangs, and the model answers with a call. */
async function hangAtTool(volume: Volume, agent: RemoteAgent, full = false): Promise<void> {
  await agent.begin({ pause: true, calls: [CALL] })
  await agent.watch(({ requests }) => requests.length > 0)
  if (full) volume.fill()
  volume.freeze()
  await agent.order({ kind: 'proceed' })
  const { state, open } = await agent.watch((sight) => sight.state.active.tool === 1 && sight.state.oldestAgeMs > 100)
  expect(state).toMatchObject({ active: { step: 0, request: 0, tool: 1, turn: 0 } })
  expect(open).toMatchObject([{ boundary: 'tool', callId: 'hung', waiting: true }])
}

describe.runIf(canLoop)(
  'a disk that hangs (ext4 frozen by fsfreeze: its writes do not return, whatever is sent to them)',
  () => {
    test.each([
      ['succeeds', false],
      ['fails', true],
    ])(
      'D07: a call that hangs at its barrier is stopped at once by a cancel, and the write that %s later changes nothing',
      async (_late, full) => {
        const { volume, agent, log } = await onVolume()
        await hangAtTool(volume, agent, full)
        const stopped = await agent.order({ kind: 'abort' })
        expect([stopped.turn, stopped.bodies]).toEqual(['aborted', []])
        expect(stopped.results['hung']).toContain('aborted before dispatch')
        expect(stopped.barriers).toMatchObject([{ boundary: 'tool', outcome: 'aborted', flushOutcome: 'pending' }])
        volume.thaw()
        const late = await agent.watch(({ open }) => open.length === 0)
        expect([late.bodies, late.results['hung']]).toEqual([[], stopped.results['hung']])
        expect(late.barriers.filter(({ callId }) => callId === 'hung')).toEqual([])
        expect(late.logs.filter((line) => line.startsWith('UNHANDLED'))).toEqual([])
        if (full) volume.empty()
        const next = await agent.turn({ calls: [{ name: 'write', id: 'next' }] }, {})
        expect([next.turn, next.bodies, next.state.consecutiveFailures]).toEqual(['completed', ['next'], 0])
        expect(log()).toHaveLength(next.events)
      },
    )

    test('D07: a request that hangs at its barrier is stopped at once by a cancel; its adapter is never called', async () => {
      const { volume, agent } = await onVolume({ strategy: coalesced })
      volume.freeze()
      await agent.begin({})
      await agent.watch(({ state }) => state.active.request === 1 && state.oldestAgeMs > 100)
      const stopped = await agent.order({ kind: 'abort' })
      expect([stopped.turn, stopped.requests]).toEqual(['aborted', []])
      volume.thaw()
      const late = await agent.watch(({ open }) => open.length === 0)
      expect(late.requests).toEqual([])
      expect((await agent.turn({})).turn).toBe('completed')
    })

    test('D07: the policy can be unloaded while a write hangs; who waits is told why, and nothing runs', async () => {
      const { volume, agent } = await onVolume()
      await hangAtTool(volume, agent)
      const before = performance.now()
      await agent.order({ kind: 'unload' })
      expect(performance.now() - before).toBeLessThan(2_000)
      const told = await agent.watch(({ results }) => results['hung'] !== undefined)
      expect([told.results['hung'], told.bodies]).toEqual([
        expect.stringContaining('was unloaded before this tool was durable'),
        [],
      ])
      volume.thaw()
      expect((await agent.settled()).bodies).toEqual([])
    })

    test(
      `a disk that answers after ${SLOW_MS} ms costs that time and nothing else; the operator reads which barrier waits`,
      { timeout: 30_000 + SLOW_MS },
      async () => {
        const { volume, agent, log } = await onVolume({ policy: { overdueMs: 200 } })
        await hangAtTool(volume, agent)
        const named = await agent.watch(({ logs, open }) => logs.length > 0 && (open[0]?.ageMs ?? Infinity) >= SLOW_MS)
        expect(named.logs).toEqual([
          expect.stringMatching(/^checkpoint tool of tool write \(session victim, turn 2, step 1\) is open for/),
        ])
        volume.thaw()
        const done = await agent.settled()
        expect([done.turn, done.bodies]).toEqual(['completed', ['hung']])
        const [slow] = done.barriers
        expect(slow).toMatchObject({
          boundary: 'tool',
          outcome: 'dispatched',
          flushOutcome: 'durable',
          unguarded: false,
        })
        expect(slow?.durationMs).toBeGreaterThanOrEqual(SLOW_MS)
        expect(callsOf(log())).toContain('hung')
      },
    )

    test('a limit on the wait refuses the call while the disk hangs, and the next turn after it answers goes on', async () => {
      const { volume, agent, log } = await onVolume({ policy: { timeoutMs: 200 } })
      await agent.begin({ pause: true, calls: [CALL] })
      await agent.watch(({ requests }) => requests.length > 0)
      volume.freeze()
      await agent.order({ kind: 'proceed' })
      const limited = await agent.watch(({ turn }) => turn !== undefined)
      expect([limited.turn, limited.bodies]).toEqual(['error', []])
      expect(limited.results['hung']).toContain('was not durable within')
      expect(limited.barriers.map((record) => [record.boundary, record.outcome, record.errorType])).toEqual([
        ['tool', 'timeout', 'timeout'],
        ['step', 'timeout', 'timeout'],
      ])
      volume.thaw()
      await agent.settled()
      const next = await agent.turn({ calls: [{ name: 'write', id: 'next' }] }, {})
      expect([next.turn, next.bodies]).toEqual(['completed', ['next']])
      expect(log()).toHaveLength(next.events)
    })

    test('kill -9 while a write hangs: the body has not run, and the log can be resumed', async () => {
      const { volume, agent } = await onVolume()
      await hangAtTool(volume, agent)
      const gone = agent.kill()
      volume.thaw()
      await gone
      // A kill can cut the write short: a torn tail is no damage, resuming takes it away.
      const { events } = readOutside(findLog(volume.logs, SESSION) ?? '')
      expect(isContiguous(events)).toBe(true)
      const { results } = await (await RemoteAgent.start({ root: volume.logs, resume: true })).order({ kind: 'look' })
      // The write may have come through after all; then the call is told as unknown.
      const told = callsOf(events).has('hung') ? 'outcome is unknown' : 'before the Harness recorded it'
      expect(results['hung'] ?? told).toContain(told)
    })
  },
)
