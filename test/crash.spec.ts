import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import type { RecoveredCall } from '../src/index.ts'
import { ATTR_RECOVERY, SPAN_TURN } from '../src/semconv.ts'
import { createTool } from '../src/testing/harness.ts'
import { createApp, tempFolder, type App } from './support/app.ts'
import { isOnDisk, readLog } from './support/log.ts'
import { registerSdk } from './support/sdk.ts'

const CHILD = fileURLToPath(new URL('./support/crash-child.ts', import.meta.url))

/** Start the child, wait until it says where it is, and kill it there. Returns what it said. */
async function killAt(root: string, point: string, index = 0): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, root, point, String(index)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (line === `at ${point}`) break
  }
  child.kill('SIGKILL')
  expect(await exited).toEqual([null, 'SIGKILL'])
  return lines
}

/** Resume the killed session in this process. */
async function resume(
  root: string,
): Promise<{ app: App; recovered: RecoveredCall[]; codes: (string | undefined)[]; ran: string[] }> {
  const ran: string[] = []
  const app = await createApp({
    root,
    tools: [createTool('write', () => ran.push('write')), createTool('read', () => ran.push('read'))],
  })
  const { agent } = await app.resumeAgent('victim')
  const recovered = app.records.filter((record) => record.kind === 'recovered')
  const codes = agent.session.events.flatMap((event) => (event.type === 'tool/result' ? [event.data.error?.code] : []))
  await app.say(agent, 'go on')
  expect(agent.session.events.at(-1)?.data).toMatchObject({ reason: { kind: 'completed' } })
  await app.dispose()
  return { app, recovered, codes, ran }
}

test('killed when the adapter has its request: everything before the request is on disk', async () => {
  const root = tempFolder()
  await killAt(root, 'request')
  expect(readLog(root).map((event) => event.type)).toEqual(['turn/start'])
})

test('killed inside a tool body: its call is on disk with an unknown outcome, the next call was not started, nothing is retried', async () => {
  const root = tempFolder()
  await killAt(root, 'tool')
  expect([isOnDisk(root, 'call-a'), isOnDisk(root, 'call-b')]).toEqual([true, false])
  const { recovered, codes, ran } = await resume(root)
  expect(codes).toEqual(['TOOL_OUTCOME_UNKNOWN', 'TOOL_NOT_STARTED'])
  const call = { kind: 'recovered', sessionId: 'victim', turn: 1, step: 1 }
  expect(recovered).toEqual([
    { ...call, recovery: 'unknown', callId: 'call-a' },
    { ...call, recovery: 'not_started', callId: 'call-b' },
  ])
  expect(ran).toEqual([])
})

test('killed before the barrier of a call: the call may be absent, and its body has not run', async () => {
  const root = tempFolder()
  await killAt(root, 'before-tool')
  expect(isOnDisk(root, 'call-a')).toBe(false)
  const { recovered, ran } = await resume(root)
  expect(recovered).toEqual([])
  expect(ran).toEqual([])
})

test('a call is counted as recovered once over three resumes of the same log', async () => {
  const root = tempFolder()
  await killAt(root, 'tool')
  const counts: number[] = []
  for (let round = 0; round < 3; round += 1) {
    const app = await createApp({ root })
    const handle = await app.resumeAgent('victim')
    counts.push(app.records.filter((record) => record.kind === 'recovered').length)
    // With and without a turn in between.
    if (round === 1) await app.say(handle.agent, 'go on')
    await app.dispose()
  }
  expect(counts).toEqual([2, 0, 0])
})

test('[D06] killed inside a random body of eight parallel calls: every body found its own call on disk, and each is recovered as unknown', async () => {
  const root = tempFolder()
  const said = await killAt(root, 'parallel', Math.floor(Math.random() * 8))
  expect(said.filter((line) => line.startsWith('MISSING'))).toEqual([])
  const log = readLog(root)
  expect(log.map((event) => event.seq)).toEqual(log.map((_, seq) => seq))
  const { recovered, codes } = await resume(root)
  const started = log.filter((event) => event.type === 'tool/call')
  expect(recovered.filter((call) => call.recovery === 'unknown')).toHaveLength(started.length)
  expect(codes).toHaveLength(8)
})

test('a fork of a session whose calls were recovered does not count them again', async () => {
  const root = tempFolder()
  await killAt(root, 'tool')
  const app = await createApp({ root })
  const { agent } = await app.resumeAgent('victim')
  const end = agent.session.events.findLast((event) => event.type === 'turn/end')
  app.ctx.sessions.fork(agent.session, end?.seq, 'fork' as never)
  expect(app.records.filter((record) => record.kind === 'recovered').map((record) => record.sessionId)).toEqual([
    'victim',
    'victim',
  ])
})

test('the first turn after a recovery carries its worst verdict on its span, and no later one', async () => {
  const sdk = registerSdk()
  const root = tempFolder()
  await killAt(root, 'tool')
  const app = await createApp({ root })
  const { agent } = await app.resumeAgent('victim')
  await app.say(agent, 'go on')
  await app.say(agent, 'and on')
  const turns = () => sdk.spans().filter((span) => span.name === SPAN_TURN)
  await vi.waitFor(() => expect(turns().map((span) => span.attributes[ATTR_RECOVERY])).toEqual(['unknown', undefined]))
})
