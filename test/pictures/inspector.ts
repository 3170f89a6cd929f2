/**
 * The picture of the inspector in the README: `npm run pictures:inspector [folder]`. Agents at work on the real harness, a
 * disk that is full once, a crash that was recovered, and one write that hangs. With a folder, the dark and the narrow
 * page, too.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '@deepseek-ai/cordis'
import * as policy from '../../src/index.ts'
import * as inspector from '../../src/inspector.ts'
import coalesced from '../../src/strategies/coalesced.ts'
import { createHarness, createTool, ScriptedModel, type ScriptedAnswer } from '../../src/testing/harness.ts'
import { launchChromium } from '../support/browser.ts'

const PORT = 29_465
const SESSIONS = ['checkout-bug', 'docs-refresh', 'nightly-triage']
const CRASH_CHILD = fileURLToPath(new URL('../support/crash-child.ts', import.meta.url))

/** One turn of a coding agent. */
const TURN: ScriptedAnswer[] = [
  [{ name: 'read_file' }, { name: 'read_file' }, { name: 'grep' }],
  [{ name: 'edit_file' }],
  [{ name: 'bash' }],
  [{ name: 'read_file' }, { name: 'grep' }],
  'The test passes now.',
]

let onFlush: ((boundary: string | undefined) => unknown) | undefined
const faults = {
  name: 'faults',
  inject: ['checkpoints'],
  apply(ctx: Context) {
    ctx.on('session/flush', () => onFlush?.(ctx.checkpoints.open().at(-1)?.boundary) as Promise<void>)
  },
}

const [folder] = process.argv.slice(2)
const root = mkdtempSync(join(tmpdir(), 'inspector-'))
await crash(root)
const work = (name: string, ms: number, parallel: boolean) => createTool(name, () => sleep(ms), { parallel })
const model = new ScriptedModel()
const harness = await createHarness({
  root,
  compression: 'none',
  model,
  tools: [work('read_file', 3, true), work('grep', 5, true), work('edit_file', 2, false), work('bash', 30, false)],
  plugins: [[policy], [coalesced], [faults], [inspector, { port: PORT }]],
})
const browser = await launchChromium()
try {
  await harness.resumeAgent('victim')
  for (let round = 0; round < 12; round += 1) {
    for (const session of SESSIONS.slice(0, 1 + (round % 3))) {
      const agent = await agentOf(session)
      model.replace(TURN)
      // A disk is not always as quick as now.
      onFlush = () => (Math.random() < 0.06 ? sleep(8 + Math.random() * 180) : undefined)
      await harness.say(agent, 'Fix the failing test.')
    }
  }
  onFlush = fail
  model.replace([[{ name: 'edit_file' }], 'I could not save my work.'])
  await harness.say(await agentOf('checkout-bug'), 'Fix the other one, too.')
  onFlush = (boundary) => (boundary === 'tool' ? new Promise(() => {}) : undefined)
  model.replace([[{ name: 'bash' }]])
  void harness.say(await agentOf('nightly-triage'), 'Run the tests.')
  await sleep(12_300)
  await shoot(fileURLToPath(new URL('../../docs/inspector.png', import.meta.url)), {})
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true })
    await shoot(join(folder, 'dark.png'), { colorScheme: 'dark' })
    await shoot(join(folder, 'narrow.png'), { viewport: { width: 390, height: 1_400 } })
    await shoot(join(folder, 'whole.png'), { fullPage: true })
  }
} finally {
  await browser.close()
  await harness.dispose()
  rmSync(root, { recursive: true, force: true })
}

async function agentOf(id: string) {
  const live = harness.ctx.agents.list().find((agent) => agent.session.id === id)
  return live ?? (await harness.createAgent(id, { agentPreset: 'coder' })).agent
}

function fail(boundary: string | undefined): void {
  if (boundary !== 'tool') return
  onFlush = undefined
  throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
}

async function shoot(
  path: string,
  options: { colorScheme?: 'dark'; viewport?: { width: number; height: number }; fullPage?: boolean },
) {
  const { colorScheme = 'light', viewport = { width: 1_280, height: 1_180 }, fullPage = false } = options
  const page = await browser.newPage({ viewport, colorScheme })
  await page.goto(`http://127.0.0.1:${PORT}/`)
  await page.locator('#open-rows tr.bad').waitFor()
  await page.waitForTimeout(300)
  await page.screenshot({ path, fullPage })
  await page.close()
}

/** Kill a process inside a tool body, so that there is something to recover. */
async function crash(sessions: string): Promise<void> {
  const child = spawn(process.execPath, [CRASH_CHILD, sessions, 'tool'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) if (line === 'at tool') break
  child.kill('SIGKILL')
  await exited
}
