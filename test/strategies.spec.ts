import { describe, expect, test, vi } from 'vitest'
import coalesced from '../src/strategies/coalesced.ts'
import pipelined from '../src/strategies/pipelined.ts'
import selective from '../src/strategies/selective.ts'
import { Disk } from '../src/testing/disk.ts'
import { storageError, summary, type App } from './support/app.ts'
import { readLog } from './support/log.ts'
import { ALL_ON_DISK, createUnder } from './support/strategies.ts'

const decisions = (app: App) => app.barriers().map(({ boundary, decision }) => `${boundary}:${decision}`)

describe('coalesced', () => {
  test('leaves the step to the request, and says why', async () => {
    const { app, ran } = await createUnder(coalesced, {})
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    await vi.waitFor(() => expect(app.barriers().at(-1)?.boundary).toBe('turn'))
    expect(decisions(app).join(' ')).toBe(
      'step:skip request:flush tool:flush step:skip request:flush tool:flush tool:flush step:skip request:flush turn:start',
    )
    expect(app.barriers()[0]).toMatchObject({ reason: 'the request that follows flushes', unguarded: false })
    expect(ran).toEqual(ALL_ON_DISK)
  })

  test('a failed flush surfaces one hook later: at the request, after step/start was recorded', async () => {
    const ends = async (strategy: object | undefined) => {
      const disk = new Disk()
      const { app } = await createUnder(strategy, {}, { disk })
      disk.door = ({ number }) => {
        if (number === 1) throw storageError('ENOSPC')
      }
      const { agent } = await app.createAgent()
      await app.say(agent, 'go')
      await app.ctx.sessions.flush(agent.session)
      return { adapter: app.model.requests.length, types: readLog(app.root).map(({ type }) => type) }
    }
    const stock = await ends(undefined)
    expect(stock.adapter).toBe(0)
    expect(stock.types).not.toContain('step/start')
    const later = await ends(coalesced)
    expect(later.adapter).toBe(0)
    expect(later.types).toContain('step/start')
    expect(later.types.slice(-2)).toEqual(['step/end', 'turn/end'])
  })
})

describe('pipelined', () => {
  test('starts the write of a step and lets the agent go on', async () => {
    const disk = new Disk()
    const { app, ran } = await createUnder(pipelined, {}, { disk })
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    await vi.waitFor(() => expect(app.barriers().at(-1)?.boundary).toBe('turn'))
    expect(decisions(app).filter((decision) => decision.startsWith('step'))).toEqual(Array(3).fill('step:start'))
    expect(app.barriers().every(({ flushOutcome }) => flushOutcome === 'durable')).toBe(true)
    expect(ran).toEqual(ALL_ON_DISK)
  })

  test('an early write that fails is recorded, and the request that joined it flushes anew', async () => {
    const disk = new Disk()
    const { app } = await createUnder(pipelined, {}, { disk, answers: [] })
    const { agent } = await app.createAgent()
    await app.ctx.sessions.flush(agent.session)
    const early = Promise.withResolvers<void>()
    disk.door = ({ number }) => (number === 1 ? early.promise : undefined)
    const saying = app.say(agent, 'go')
    await vi.waitFor(() =>
      expect(app.ctx.checkpoints.open().map(({ boundary }) => boundary)).toEqual(['step', 'request']),
    )
    early.reject(storageError('ENOSPC'))
    await saying
    await vi.waitFor(() => expect(app.barriers()).toHaveLength(3))
    expect(summary(app.barriers())).toEqual([
      'step:dispatched:rejected',
      'request:dispatched:durable',
      'turn:dispatched:durable',
    ])
    expect(app.barriers().map(({ errorType }) => errorType)).toEqual(['ENOSPC', undefined, undefined])
    expect(app.model.requests).toHaveLength(1)
  })

  test('the request is refused when its own flush fails too', async () => {
    const disk = new Disk()
    disk.door = () => Promise.reject(storageError('ENOSPC'))
    const { app } = await createUnder(pipelined, {}, { disk })
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    expect(app.model.requests).toHaveLength(0)
    expect(summary(app.barriers().filter(({ boundary }) => boundary === 'request'))).toEqual([
      'request:rejected:rejected',
    ])
  })

  test('a backend that rejects with one and the same error is asked twice, not for ever', async () => {
    const disk = new Disk()
    const error = storageError('EIO')
    disk.door = () => Promise.reject(error)
    const { app } = await createUnder(pipelined, {}, { disk, policy: { turnBoundary: false } })
    const { agent } = await app.createAgent()
    await app.ctx.sessions.flush(agent.session)
    await app.say(agent, 'go')
    expect(app.model.requests).toHaveLength(0)
    expect(disk.appends.length).toBeLessThanOrEqual(3)
  })
})

describe('selective', () => {
  const policyConfig = { allowUnguarded: true }

  test('releases the tools that the operator names, and every release is counted', async () => {
    const { app, ran } = await createUnder(selective, { tools: ['re*'] }, { policy: policyConfig })
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    expect(ran).toEqual([
      ['write', true],
      ['read', false],
      ['read', false],
    ])
    const released = app.barriers().filter(({ unguarded }) => unguarded)
    expect(released.map(({ toolName, reason }) => `${toolName}: ${reason}`)).toEqual(
      Array(2).fill('read: the operator released this tool'),
    )
  })

  test('a tool that is not named waits', async () => {
    const { app, ran } = await createUnder(selective, { tools: ['rea'] }, { policy: policyConfig })
    const { agent } = await app.createAgent()
    await app.say(agent, 'go')
    expect(ran).toEqual(ALL_ON_DISK)
    expect(app.barriers().filter(({ unguarded }) => unguarded)).toEqual([])
  })

  test('refuses to load without allowUnguarded, and says so', async () => {
    const { app } = await createUnder(undefined, undefined)
    await expect(app.mount(selective, { tools: ['read'] })).rejects.toThrow(
      /^dsh-checkpoint-otel\/strategies\/selective: .*set allowUnguarded: true in the config of dsh-checkpoint-otel/,
    )
    expect(app.ctx.checkpoints.state().strategy).toBe('default')
  })
})
