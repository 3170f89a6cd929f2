/** Strategies of the package in a headless profile of the real CLI: chosen in its patch, swapped while a turn runs. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { conversation, DshHome, pathOf } from './support/dsh-cli.ts'
import { findCli } from './support/dsh-cli-hosts.ts'
import {
  bash,
  hasResult,
  startMockModel,
  type MockAnswer,
  type MockModel,
  type MockRequest,
} from './support/mock-model.ts'

// Each process has a limit of its own, with a message that says more than the runner's.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 600_000 })
const APPEARS = { timeout: 30_000, interval: 50 }

const cli = await findCli()

describe.skipIf(cli === undefined)('the strategy of a real dsh', () => {
  let home: DshHome
  let model: MockModel
  let answer: (request: MockRequest) => MockAnswer | Promise<MockAnswer>

  beforeAll(async () => {
    model = await startMockModel((request) => answer(request))
    home = await DshHome.withPolicy(cli ?? '')
  })
  beforeEach(async () => {
    await home.patch()
    await home.clear()
  })
  afterAll(async () => {
    await model?.close()
    await home?.remove()
  })

  test('a strategy row in the profile decides, named on every record', async () => {
    await home.patch({ insert: [COALESCED] })
    answer = (request) => (hasResult(request, 'call-1') ? 'all done' : [bash('call-1', 'true')])
    expect(await home.start('Run it.', model.url).finished).toMatchObject({ code: 0, stderr: '' })
    const barriers = await home.barriers()
    expect(new Set(barriers.map((barrier) => barrier.strategy))).toEqual(new Set(['coalesced']))
    const guarded = barriers.filter((barrier) => barrier.guarded)
    expect(guarded.map((barrier) => barrier.flushOutcome)).toEqual(guarded.map(() => 'durable'))
  })

  test('a patch edited while a turn runs swaps the strategy for the barriers that follow', async () => {
    const { promise: edited, resolve: release } = Promise.withResolvers<void>()
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
    answer = async (request) => {
      if (hasResult(request, 'call-1')) return 'all done'
      ask()
      await edited
      return [bash('call-1', 'true')]
    }
    const { finished } = home.start('Run it.', model.url)
    await asked
    await home.patch({ insert: [COALESCED] })
    // On a busy machine the host's watcher may start after its first request, and misses what was edited before.
    const editing = setInterval(() => void home.patch({ insert: [COALESCED] }), 3_000)
    await vi
      .waitFor(async () => expect(await home.lines()).toContainEqual({ strategy: 'coalesced' }), APPEARS)
      .finally(() => {
        clearInterval(editing)
        release()
      })
    expect(await finished).toMatchObject({ code: 0, stderr: '' })
    const barriers = conversation(await home.barriers())
    expect(barriers.map((barrier) => `${pathOf(barrier)}: ${barrier.strategy}`)).toEqual([
      '1.1 step: default',
      '1.1 request: default',
      '1.1 tool bash: coalesced',
      '1.2 step: coalesced',
      '1.2 request: coalesced',
      '1.2 turn: coalesced',
    ])
  })
})

const COALESCED = { id: 'checkpoint-strategy', name: 'dsh-checkpoint-otel/strategies/coalesced' }
