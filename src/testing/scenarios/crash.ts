/** kill -9 inside a tool body, then the log read from outside and the session resumed. */
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { callIdOf, eventsOf } from '../checks.ts'
import { createHarness } from '../harness.ts'
import type { Findings } from '../report.ts'
import type { Subject } from '../subject.ts'
import { createRandom } from '../wait.ts'
import { CRASH_SESSION, type CrashPlan } from './crash-child.ts'

/** Bodies that begin before the kill, at most. */
const MAX_BODIES = 12
const STDERR_KEPT = 2_000

export async function crash(subject: Subject, findings: Findings): Promise<void> {
  const random = createRandom(subject.seed)
  for (let kill = 0; kill < subject.kills; kill += 1) {
    const root = await mkdtemp(join(tmpdir(), 'dsh-crash-'))
    try {
      const began = await killAfter(
        subject,
        root,
        1 + Math.floor(random() * MAX_BODIES),
        Math.floor(random() * 0x7fff_ffff),
        findings,
      )
      if (began !== undefined) await examine(subject, root, began, findings)
    } finally {
      await rm(root, { recursive: true, force: true })
    }
  }
}

/** One body of the killed process that began. */
interface Began {
  readonly callId: string
  readonly tool: string
}

/** @returns what had begun, or undefined when the process ended by itself. */
async function killAfter(
  subject: Subject,
  root: string,
  bodies: number,
  seed: number,
  findings: Findings,
): Promise<Began[] | undefined> {
  const { module, config, policy, exclusive, parallel } = subject
  const plan: CrashPlan = { module: module ?? '', config, policy, exclusive, parallel, root, seed }
  // The same file name with the same suffix: sources run as they are.
  const child = spawn(
    process.execPath,
    [
      '--unhandled-rejections=strict',
      import.meta.filename.replace(/crash(\.\w+)$/, 'crash-child$1'),
      JSON.stringify(plan),
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()))
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-STDERR_KEPT)
  })
  const began: Began[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, callId = '', tool = ''] = line.split(' ')
    if (word !== 'body' && word !== 'early') continue
    if (word === 'early' && !subject.mayRelease.has(tool)) {
      findings.add('early', `with a slow disk the body of tool "${tool}" began before its call was on disk`)
    }
    began.push({ callId, tool })
    // Marker content seen: kill inside this body, which takes a moment on purpose.
    if (began.length === bodies) child.kill('SIGKILL')
  }
  await exited
  if (child.signalCode === 'SIGKILL') return began
  findings.add('child', `the process ended by itself (code ${child.exitCode}) instead of running on:\n${stderr}`)
  return undefined
}

async function examine(subject: Subject, root: string, began: readonly Began[], findings: Findings): Promise<void> {
  const [file] = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.jsonl'))
  const text = file === undefined ? '' : await readFile(join(root, file), 'utf8')
  // The last line may be torn; without a newline it was never acknowledged.
  const events = eventsOf(text.split('\n').slice(0, -1))
  const broken = events.findIndex(({ seq }, index) => seq !== index)
  if (broken !== -1) findings.add('log', `after the kill the log is not contiguous at event ${broken}`)
  const called = new Set<string>()
  const answered = new Set<string>()
  for (const { type, data } of events) {
    if (type === 'tool/call') called.add(String(data['callId']))
    if (type !== 'tool/result') continue
    const callId = callIdOf(data)
    if (!called.has(callId))
      findings.add('orphan', `after the kill the log holds a result of call ${callId}, but not the call`)
    answered.add(callId)
  }
  const guarded = began.filter(({ tool }) => !subject.mayRelease.has(tool)).map(({ callId }) => callId)
  const forgotten = guarded.filter((callId) => !called.has(callId))
  if (forgotten.length > 0) {
    findings.add(
      'forgotten',
      `killed while call ${forgotten[0]} ran, the log on disk has no such call: its effect would be forgotten or repeated`,
    )
  }
  const started = guarded.filter((callId) => called.has(callId) && !answered.has(callId))
  if (events.length > 0) await resume(root, started, findings)
}

/** Resume the session in a fresh app: each call that had started must come back as unknown. */
async function resume(root: string, started: readonly string[], findings: Findings): Promise<void> {
  const harness = await createHarness({ root, compression: 'none' })
  try {
    const { agent } = await harness.resumeAgent(CRASH_SESSION)
    const session = agent.session as { snapshotEvents?(): unknown; events?: unknown }
    const events = (session.snapshotEvents?.() ?? session.events) as { type: string; data: Record<string, unknown> }[]
    for (const callId of started) {
      const results = events.filter(({ type, data }) => type === 'tool/result' && callIdOf(data) === callId)
      const code = (results[0]?.data['error'] as { code?: unknown } | undefined)?.code
      if (results.length !== 1 || code !== 'TOOL_OUTCOME_UNKNOWN') {
        findings.add(
          'recovery',
          `call ${callId} was running at the kill; resumed, it has ${results.length} result(s), code ${String(code)}`,
        )
      }
    }
  } finally {
    await harness.dispose()
  }
}
