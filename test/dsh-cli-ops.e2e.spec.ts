/** What happens to a real dsh in operation: killed and resumed, with subagents and in Code Mode. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { conversation, DshHome, pathOf } from './support/dsh-cli.ts'
import { findCli } from './support/dsh-cli-hosts.ts'
import { killGroup } from './support/dsh-cli-process.ts'
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

describe.skipIf(cli === undefined)('a real dsh in operation', () => {
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

  describe('killed in the middle of a bash call', () => {
    afterEach(() => writeFile(join(home.workspace, 'release'), ''))

    test('the resumed session tells the unknown outcome once, and runs nothing again', async () => {
      const marker = join(home.workspace, 'marker')
      const command = 'echo started >> marker; until [ -e release ]; do sleep 0.1; done'
      answer = (request) => (hasResult(request, 'call-1') ? 'understood' : [bash('call-1', command)])
      const { child, finished } = home.start('Work until you are released.', model.url)
      await vi.waitFor(async () => expect(await readFile(marker, 'utf8')).toBe('started\n'), APPEARS)
      child.kill('SIGKILL')
      await writeFile(join(home.workspace, 'release'), '')
      await finished
      killGroup(child)

      const killed = await home.barriers()
      expect(conversation(killed).map(pathOf)).toEqual(['1.1 step', '1.1 request', '1.1 tool bash'])
      const session = killed[0]?.sessionId ?? ''

      await home.clear()
      let scraped = ''
      answer = async () => {
        scraped = await (await fetch((await home.metricsUrl()) ?? '')).text()
        return 'understood'
      }
      expect(await home.resume(session, 'Go on.', model.url, { insert: [PROMETHEUS] })).toMatchObject({
        code: 0,
        stderr: '',
      })
      const resumed = await home.records()
      expect(resumed.filter((record) => record.kind === 'recovered')).toEqual([
        { kind: 'recovered', recovery: 'unknown', sessionId: session, callId: 'call-1', turn: 1, step: 1 },
      ])
      expect(scraped).toMatch(/^dsh_checkpoint_recovered_calls_total\{.*"unknown".*\} 1$/m)
      expect(conversation(await home.barriers()).map(pathOf)).toEqual(['2.1 step', '2.1 request', '2.1 turn'])
      const result = model.requests.at(-1)?.messages.find((message) => message.tool_call_id === 'call-1')
      expect(String(result?.content)).toMatch(/unknown/i)
      expect(await readFile(marker, 'utf8')).toBe('started\n')

      await home.clear()
      answer = () => 'understood'
      expect(await home.resume(session, 'Go on again.', model.url)).toMatchObject({ code: 0, stderr: '' })
      expect((await home.records()).filter((record) => record.kind === 'recovered')).toEqual([])
    })
  })

  test('a subagent has barriers of its own, one level deeper, and adds none to its parent', async () => {
    answer = (request) => {
      const isChild =
        JSON.stringify(request.messages).includes('CHILD TASK') &&
        !JSON.stringify(request.messages).includes('PARENT TASK')
      if (isChild) return hasResult(request, 'child-1') ? 'child done' : [bash('child-1', 'true')]
      const args = { description: 'Delegate it', prompt: 'CHILD TASK', run_in_background: false }
      return hasResult(request, 'call-1') ? 'all done' : [{ id: 'call-1', name: 'subagent', args }]
    }
    expect(await home.start('PARENT TASK', model.url).finished).toMatchObject({ code: 0, stderr: '' })
    const barriers = await home.barriers()
    expect(conversation(barriers.filter((barrier) => barrier.delegationDepth === 0)).map(pathOf)).toEqual([
      '1.1 step',
      '1.1 request',
      '1.1 tool subagent',
      '1.2 step',
      '1.2 request',
      '1.2 turn',
    ])
    expect(conversation(barriers.filter((barrier) => barrier.delegationDepth === 1)).map(pathOf)).toEqual([
      '1.1 step',
      '1.1 request',
      '1.1 tool bash',
      '1.2 step',
      '1.2 request',
      '1.2 turn',
    ])
    expect(new Set(barriers.map((barrier) => barrier.sessionId)).size).toBe(2)
  })

  test('calls that a Code Mode program makes share the barrier of the program', async () => {
    const code = `for (const n of [1, 2, 3]) await tools.bash({ command: 'echo ' + n + ' >> nested', description: 'Count' })`
    const args = { code, description: 'Count to three' }
    answer = (request) => (hasResult(request, 'call-1') ? 'all done' : [{ id: 'call-1', name: 'run_code', args }])
    expect(await home.start('Count.', model.url, { DSH_TOOLS_MODE: 'code' }).finished).toMatchObject({
      code: 0,
      stderr: '',
    })
    expect(await readFile(join(home.workspace, 'nested'), 'utf8')).toBe('1\n2\n3\n')
    expect(conversation(await home.barriers()).map(pathOf)).toEqual([
      '1.1 step',
      '1.1 request',
      '1.1 tool run_code',
      '1.2 step',
      '1.2 request',
      '1.2 turn',
    ])
  })
})

const PROMETHEUS = { id: 'checkpoint-prometheus', name: 'dsh-checkpoint-otel/prometheus', config: { port: 0 } }
