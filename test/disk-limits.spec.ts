/** What the backend of the host does on a bad day that a policy above it cannot mend. Each of these turns red when the host mends it. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createHarness, createTool, ScriptedModel } from '../src/testing/harness.ts'
import { createApp, summary, tempFolder } from './support/app.ts'
import { callsOf, findLog, readOutside } from './sweep/outside.ts'
import { canMount, run, Volume } from './sweep/volume.ts'

const tools = (ran: string[]) => [createTool('write', (_args, exec) => void ran.push(exec.callId))]

test('known limit: when the very first look at the folder fails, the backend stays refused until it is mounted again; nothing runs unguarded', async () => {
  const root = join(tempFolder(), 'logs')
  mkdirSync(root)
  const ran: string[] = []
  const app = await createApp({ root, tools: tools(ran), model: new ScriptedModel() })
  renameSync(root, `${root}-away`)
  writeFileSync(root, '')
  const { agent } = await app.createAgent()
  await app.say(agent, 'hi')
  renameSync(root, `${root}-file`)
  renameSync(`${root}-away`, root)
  await app.say(agent, 'hi again')
  const { agent: another } = await app.createAgent()
  await app.say(another, 'hi')
  expect(app.model.requests).toEqual([])
  expect(
    app
      .barriers()
      .filter(({ boundary }) => boundary === 'step')
      .map(({ errorType }) => errorType),
  ).toEqual(['ENOTDIR', 'ENOTDIR', 'ENOTDIR'])
})

test('known limit: a log that is deleted under a running agent begins anew without its header and cannot be resumed', async () => {
  const ran: string[] = []
  const app = await createApp({
    tools: tools(ran),
    model: new ScriptedModel(['done', [{ name: 'write', id: 'after' }]]),
  })
  const { agent } = await app.createAgent('victim')
  await app.say(agent, 'hi')
  await app.ctx.sessions.flush(agent.session)
  rmSync(findLog(app.root, 'victim') ?? '')
  await app.say(agent, 'hi again')
  // Every flush says that it is durable, and it is: in a file that nobody can read.
  expect([ran, summary(app.barriers()).filter((line) => !line.endsWith(':dispatched:durable'))]).toEqual([
    ['after'],
    [],
  ])
  await app.dispose()
  const fresh = await createHarness({ root: app.root, compression: 'none' })
  await expect(fresh.resumeAgent('victim')).rejects.toThrow('session log')
  await fresh.dispose()
})

test.runIf(canMount)(
  'known limit: where the backend cannot take a torn append back, the next one is glued to it and what follows is lost',
  async () => {
    const volume = Volume.tmpfs()
    const ran: string[] = []
    const app = await createApp({
      root: volume.logs,
      tools: tools(ran),
      model: new ScriptedModel(['x'.repeat(9_000), 'y'.repeat(9_000), [{ name: 'write', id: 'after' }]]),
    })
    const { agent } = await app.createAgent('victim')
    await app.say(agent, 'hi')
    await app.ctx.sessions.flush(agent.session)
    const path = findLog(volume.logs, 'victim') ?? ''
    // An append-only log, as some keep it for audits: it can grow, and not be cut.
    run('chattr', '+a', path)
    volume.fill()
    await app.say(agent, 'hi '.repeat(3_000))
    const refused = app.barriers().filter(({ errorType }) => errorType !== undefined)
    expect(refused[0]).toMatchObject({ boundary: 'step', outcome: 'rejected', errorType: 'ENOSPC' })
    volume.empty()
    app.model.replace([[{ name: 'write', id: 'after' }]])
    await app.say(agent, 'hi again')
    run('chattr', '-a', path)
    expect(ran).toEqual(['after'])
    expect(() => callsOf(readOutside(path).events)).toThrow(SyntaxError)
  },
)
