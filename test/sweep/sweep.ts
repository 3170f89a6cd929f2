/** Runs deaths and adds up what they cost. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { examine, type Verdict } from './examine.ts'
import { findLog } from './outside.ts'
import { SESSION, type Plan } from './plan.ts'
import { cutPower } from './power-cut.ts'
import { plannedRounds, SUBJECTS, type Round } from './rounds.ts'
import { add, emptyTally, type Tally } from './tally.ts'

const LIFE = fileURLToPath(new URL('./life.ts', import.meta.url))
const PRELOAD = new URL('./storage-points.ts', import.meta.url).href
/** A life takes about a second; one that takes this long hangs. */
const LIFE_LIMIT_MS = 60_000
const STDERR_KEPT = 2_000

/** What a sweep found. */
export interface SweepReport {
  readonly seed: number
  readonly byFault: ReadonlyMap<string, Tally>
  readonly total: Tally
  /** What went wrong, with what repeats it. */
  readonly problems: readonly string[]
}

/** How a sweep runs. */
export interface SweepOptions {
  readonly rounds: number
  readonly seed: number
  /** Lives at a time. */
  readonly jobs: number
  readonly onRound?: (done: number, report: SweepReport) => void
}

/** Kill `rounds` lives and examine each. */
export async function sweep({ rounds, seed, jobs, onRound }: SweepOptions): Promise<SweepReport> {
  const byFault = new Map<string, Tally>()
  const report: SweepReport & { problems: string[] } = { seed, byFault, total: emptyTally(), problems: [] }
  const planned = plannedRounds(await wholeLives(), seed)
  let begun = 0
  let done = 0
  const work = async () => {
    while (begun < rounds) {
      begun += 1
      const round = planned.next().value as Round
      const { subject, compression, target, aftermath } = round
      const what = `${subject.name}, ${compression}, ${JSON.stringify(target)}, ${aftermath}`
      try {
        const { verdict, died } = await runRound(round)
        const tally = byFault.get(round.fault) ?? emptyTally()
        byFault.set(round.fault, tally)
        for (const sum of [tally, report.total]) {
          add(sum, verdict)
          if (died[0] === 'survived') sum.survived += 1
        }
        for (const problem of [...verdict.lost, ...verdict.unguarded, ...verdict.unreadable]) {
          report.problems.push(`${what} (${died.join(', then ')}): ${problem}`)
        }
      } catch (error) {
        // A life that did not even begin says nothing about the policy; it is a problem, and no reason to stop.
        report.problems.push(`${what}: ${String(error)}`)
      }
      onRound?.((done += 1), report)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return report
}

/** The points of a life that nothing kills, by strategy. */
async function wholeLives(): Promise<Map<string, Record<string, number>>> {
  const lives = await Promise.all(
    SUBJECTS.map((subject) =>
      inFolder(async (root, side) => {
        const { output, signal } = await live({
          root,
          side,
          compression: 'none',
          policy: subject.policy,
          strategy: subject.strategy,
          life: 'whole',
        })
        const points = /^points (.*)$/m.exec(output)?.[1]
        if (points === undefined) throw new Error(`a life under ${subject.name} ended early (${signal}):\n${output}`)
        return [subject.name, JSON.parse(points) as Record<string, number>] as const
      }),
    ),
  )
  return new Map(lives)
}

async function runRound(round: Round): Promise<{ verdict: Verdict; died: string[] }> {
  return inFolder(async (root, side) => {
    const { subject, compression, target } = round
    const plan: Plan = {
      root,
      side,
      compression,
      policy: subject.policy,
      strategy: subject.strategy,
      target,
      life: 'first',
    }
    const died = [await die(plan)]
    if (round.aftermath === 'power cut') cutPower(side, round.kept)
    let failure: string | undefined
    if (round.aftermath === 'killed again while resuming') {
      // Without a log there is nothing to resume: then the second life is a first one.
      const resume = findLog(root, SESSION) !== undefined
      try {
        died.push(await die({ ...plan, target: round.again, resume, life: 'second' }))
      } catch (error) {
        failure = String(error)
      }
    }
    const verdict = await examine(plan, subject.mayRelease)
    if (failure !== undefined) verdict.unreadable.push(failure)
    return { verdict, died }
  })
}

/** Live until death. A life that ends before it comes to its point is no failure: interleavings differ. */
async function die(plan: Plan): Promise<string> {
  const { output, signal, code } = await live(plan)
  if (signal === 'SIGKILL') return /^dies (.*)$/m.exec(output)?.[1] ?? 'by itself'
  if (code === 0) return 'survived'
  throw new Error(`a life failed (code ${code}, ${signal}): ${JSON.stringify(plan)}\n${output}`)
}

export async function live(plan: Plan): Promise<{ output: string; code: number | null; signal: string | null }> {
  const child = spawn(
    process.execPath,
    ['--unhandled-rejections=strict', '--import', PRELOAD, LIFE, JSON.stringify(plan)],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output = (output + chunk).slice(-STDERR_KEPT * 4)))
  const overdue = setTimeout(() => {
    output += `\nhangs for ${LIFE_LIMIT_MS} ms`
    child.kill('SIGABRT')
  }, LIFE_LIMIT_MS)
  const ended = Promise.withResolvers<void>()
  child.once('close', () => ended.resolve())
  await ended.promise
  clearTimeout(overdue)
  return { output, code: child.exitCode, signal: child.signalCode }
}

export async function inFolder<T>(act: (root: string, side: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'dsh-sweep-'))
  try {
    return await act(join(folder, 'logs'), join(folder, 'side'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
