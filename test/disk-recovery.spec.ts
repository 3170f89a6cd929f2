import { mkdirSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { isContiguous } from '../src/cli/session-log.ts'
import { createApp, storageError } from './support/app.ts'
import { examine } from './sweep/examine.ts'
import { callsOf, findLog, readOutside } from './sweep/outside.ts'
import { SESSION } from './sweep/plan.ts'
import { RemoteAgent } from './sweep/remote-agent.ts'
import { canMount, Volume } from './sweep/volume.ts'

const coalesced = { module: new URL('../src/strategies/coalesced.ts', import.meta.url).href, config: {} }
const WRITE = { name: 'write', id: 'refused' }

function wholeLog(root: string) {
  const { events, torn } = readOutside(findLog(root, SESSION) ?? '')
  expect([isContiguous(events), torn]).toEqual([true, 0])
  return events
}

describe.runIf(canMount)('a disk that is full (tmpfs of 256 KiB)', () => {
  test.each(['none', 'zstd'] as const)(
    'D03: kill -9 while it is full: nothing ran, the log is whole once it is free, and the session goes on (%s)',
    async (compression) => {
      const volume = Volume.tmpfs()
      const agent = await RemoteAgent.start({ root: volume.logs, compression })
      await agent.turn({ calls: [{ name: 'write', id: 'before' }] }, {})
      await agent.begin({ pause: true, calls: [WRITE] })
      await agent.watch(({ requests }) => requests.length > 0)
      volume.fill()
      await agent.order({ kind: 'proceed' })
      const refused = await agent.watch(({ barriers }) => barriers.some(({ errorType }) => errorType === 'ENOSPC'))
      expect(refused.bodies).toEqual([])
      await agent.kill()
      volume.empty()
      // A torn tail may be left: the kill can come before the backend took it back. Resuming repairs it.
      const { events } = readOutside(findLog(volume.logs, SESSION) ?? '')
      expect([isContiguous(events), [...callsOf(events)]]).toEqual([true, ['before']])
      const verdict = await examine(
        { root: volume.logs, side: volume.path, compression, policy: {}, life: 'first' },
        new Set(),
      )
      expect(verdict).toMatchObject({ lost: [], unguarded: [], unreadable: [] })
    },
  )

  test('D03: the request itself is refused where a strategy leaves the step to it; the reject counter rises once a barrier', async () => {
    const volume = Volume.tmpfs()
    const agent = await RemoteAgent.start({ root: volume.logs, strategy: coalesced })
    await agent.turn({})
    volume.fill()
    const refused = await agent.turn({})
    expect([refused.turn, refused.requests]).toEqual(['error', []])
    const failed = refused.barriers.filter(({ errorType }) => errorType !== undefined)
    expect(failed.map((record) => [record.boundary, record.outcome, record.errorType])).toEqual([
      ['request', 'rejected', 'ENOSPC'],
      ['turn', 'dispatched', 'ENOSPC'],
    ])
    volume.empty()
    expect((await agent.turn({})).turn).toBe('completed')
  })

  test('a session that begins while it is full is refused until it is free, then goes on with everything', async () => {
    const volume = Volume.tmpfs()
    mkdirSync(volume.logs)
    volume.fill()
    const agent = await RemoteAgent.start({ root: volume.logs })
    const refused = await agent.turn({ calls: [WRITE] })
    expect([refused.turn, refused.bodies, refused.requests]).toEqual(['error', [], []])
    volume.empty()
    const done = await agent.turn({ calls: [{ name: 'write', id: 'after' }] }, {})
    expect([done.turn, done.bodies]).toEqual(['completed', ['after']])
    expect(wholeLog(volume.logs)).toHaveLength(done.events)
  })

  test('D04: the last answer of an idle session that did not fit is written by itself once it does', async () => {
    const volume = Volume.tmpfs()
    const agent = await RemoteAgent.start({ root: volume.logs })
    await agent.turn({})
    await agent.begin({ pause: true })
    await agent.watch(({ requests }) => requests.length > 0)
    volume.fill()
    await agent.order({ kind: 'proceed' })
    const failing = await agent.settled()
    expect([failing.turn, failing.state.consecutiveFailures]).toEqual(['completed', 1])
    volume.empty()
    const healed = await agent.watch(({ state }) => state.unflushedOldestAgeMs === 0)
    expect(healed.state.consecutiveFailures).toBe(0)
    expect(wholeLog(volume.logs)).toHaveLength(healed.events)
  })

  test('D04: background writes that fail are seen before the next barrier, by an age that grows', async () => {
    const volume = Volume.tmpfs()
    const app = await createApp({ root: volume.logs, writeBatchMaxDelayMs: 5 })
    const { agent } = await app.createAgent()
    await app.say(agent, 'hi')
    await vi.waitFor(() => expect(app.ctx.checkpoints.open()).toEqual([]))
    volume.fill()
    // An open turn, so that no barrier of an idle session comes to help.
    agent.session.append('turn/start', { turn: 2 })
    for (let step = 0; step < 100; step += 1) agent.session.append('step/start', { turn: 2, step })
    await vi.waitFor(() => expect(app.logs.join('\n')).toMatch(/background write .* failed/))
    const before = app.barriers().length
    const age = () => app.ctx.checkpoints.state().unflushedOldestAgeMs
    const first = age()
    await vi.waitFor(() => expect(age()).toBeGreaterThan(first + 200))
    expect(app.barriers()).toHaveLength(before)
    volume.empty()
    await app.ctx.sessions.flush(agent.session)
  })
})

test('D04: of ten barriers the third is refused and nothing else; failures in a row are 1, then 0', async () => {
  const app = await createApp({ config: { turnBoundary: false } })
  const { agent } = await app.createAgent()
  app.flushes.on = () => {
    if (app.flushes.count === 3) throw storageError('EIO')
  }
  const failures: number[] = []
  const ended: string[] = []
  for (let barrier = 1; barrier <= 10; barrier += 1) {
    const request = { provider: 'scripted', model: 'm', messages: [], sessionId: agent.session.id }
    try {
      for await (const chunk of app.ctx.llm.stream(request)) void chunk
      ended.push('ok')
    } catch (error) {
      ended.push(String((error as { code?: unknown }).code))
    }
    failures.push(app.ctx.checkpoints.state().consecutiveFailures)
  }
  expect(ended).toEqual(['ok', 'ok', 'EIO', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'])
  expect(failures).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
  expect(app.model.requests).toHaveLength(9)
})
