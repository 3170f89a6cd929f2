/** The packed policy in a headless profile of the real CLI, against a model on loopback. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { conversation, DshHome, OUR_ROW, pathOf, STOCK_ROW } from './support/dsh-cli.ts'
import { findCli } from './support/dsh-cli-hosts.ts'
import { packProject } from './support/dsh-cli-pack.ts'
import { bash, hasResult, startMockModel, type MockModel } from './support/mock-model.ts'

// Each process has a limit of its own, with a message that says more than the runner's.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 600_000 })

const cli = await findCli()

describe.skipIf(cli === undefined)('in the real dsh', () => {
  let home: DshHome
  let model: MockModel
  let untouched: { readonly manifest: unknown; readonly rows: string }

  beforeAll(async () => {
    const tarball = await packProject()
    model = await startMockModel((request) =>
      hasResult(request, 'call-1') ? 'all done' : [bash('call-1', 'echo ran > ran.txt')],
    )
    home = await DshHome.create(cli ?? '')
    untouched = { rows: (await home.dumpConfig()).stdout, manifest: await home.manifest() }
    await home.plugin('add', tarball)
  })
  afterAll(async () => {
    await model?.close()
    await home?.remove()
  })

  test('the bundle patch switches the stock row off and puts ours in, without a warning', async () => {
    const { stdout, stderr, code } = await home.dumpConfig()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const rows = parse(stdout, { logLevel: 'silent' }) as { id: string; name: string; disabled?: boolean }[]
    expect(rows.filter((row) => /checkpoint/.test(`${row.id} ${row.name}`))).toEqual([
      { id: STOCK_ROW, name: '@deepseek-ai/dsh-session-checkpoint-policy', disabled: true },
      { id: OUR_ROW, name: 'dsh-checkpoint-otel' },
    ])
  })

  test('[D10] a task with a bash call waits at each boundary, and a plugin beside the policy sees it', async () => {
    await home.patch()
    const { code, stdout, stderr } = await home.start('Leave a file.', model.url).finished
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all done\n', stderr: '' })
    const barriers = await home.barriers()
    // The title request runs beside the first request: either may reach its barrier first.
    expect(conversation(barriers).map(pathOf)).toEqual([
      '1.1 step',
      '1.1 request',
      '1.1 tool bash',
      '1.2 step',
      '1.2 request',
      '1.2 turn',
    ])
    expect(
      barriers
        .filter((barrier) => barrier.purpose !== undefined)
        .map((barrier) => `${pathOf(barrier)} ${barrier.purpose}`),
    ).toEqual(['1.1 request session-title'])
    for (const barrier of barriers) {
      expect(barrier).toMatchObject({
        outcome: 'dispatched',
        flushOutcome: 'durable',
        strategy: 'default',
        unguarded: false,
      })
    }
    expect(await warnings(home)).toEqual([])
  })

  test('the stock policy switched on again beside ours is noticed', async () => {
    await home.clear()
    await home.patch({ id: STOCK_ROW, disabled: false })
    expect((await home.start('Leave a file.', model.url).finished).code).toBe(0)
    const said = (await warnings(home)).filter((text) => text.includes('another checkpoint policy'))
    expect(said).toHaveLength(1)
  })

  test('a wrong setting in the profile is refused with a sentence that names it', async () => {
    await home.patch({ id: OUR_ROW, config: { timeoutMs: 'soon' } })
    const { code, stderr } = await home.start('Leave a file.', model.url).finished
    expect(code).not.toBe(0)
    expect(stderr).toContain('dsh-checkpoint-otel: timeoutMs must be')
  })

  test('removed, the profile is as it was', async () => {
    await home.unpatch()
    await home.plugin('remove', 'dsh-checkpoint-otel')
    expect({ rows: (await home.dumpConfig()).stdout, manifest: await home.manifest() }).toEqual(untouched)
    await home.clear()
    await home.patch()
    expect((await home.start('Leave a file.', model.url).finished).code).toBe(0)
    expect(await home.records()).toEqual([])
  })
})

async function warnings(home: DshHome): Promise<string[]> {
  const lines = await home.lines()
  return lines.flatMap((line) => ('log' in line && line.log.logger === 'dsh-checkpoint-otel' ? [line.log.text] : []))
}
