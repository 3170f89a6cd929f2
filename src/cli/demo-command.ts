/** `demo`: flags, output and exit code; what it does is imported when it runs. */
import { Option, type Command } from 'commander'
import { UsageError, wholeNumber, type CliCommand } from './command.ts'
import type { ResumeOptions } from './demo-resume.ts'
import type { DemoOptions } from './demo-stage.ts'
import { importOnHost } from './host.ts'
import { paint } from './table.ts'
import { columnsOf, wrap } from './wrap.ts'

const MAX_TURNS = 200
const MAX_PARALLEL = 32

interface DemoFlags {
  readonly turns: number
  readonly parallel: number
  readonly dir?: string
  readonly json?: boolean
  readonly resume?: string
  /** No flag: only a caller in code can mount another policy, to see that the checks fail with a bad one. */
  readonly policy?: string
}

/** Runs an agent on the real harness, breaks it in several ways, and shows what its barriers cost and held. */
export const demoCommand: CliCommand = {
  name: 'demo',
  summary: 'Run an agent on the real harness, kill it, resume it, and show what every barrier cost.',

  configure(command: Command): void {
    command
      .addOption(new Option('--turns <n>', 'ordinary turns').default(20).argParser(wholeNumber(1, MAX_TURNS)))
      .addOption(
        new Option('--parallel <n>', 'concurrency-safe calls in one message')
          .default(4)
          .argParser(wholeNumber(1, MAX_PARALLEL)),
      )
      .option('--dir <folder>', 'keep the session logs there (default: a temporary folder, named at the end)')
      .option('--json', 'print one JSON document; progress goes to stderr')
      .addOption(
        new Option('--resume <file>', 'resume a copy of a session log of your own instead').conflicts([
          'turns',
          'parallel',
        ]),
      )
      .addHelpText('after', EXIT_CODES)
  },

  async run(options): Promise<number> {
    const { resume, dir, json = false, turns, parallel, policy } = options as unknown as DemoFlags
    const stream = json ? process.stderr : process.stdout
    const progress = (line: string) =>
      void stream.write(`${paint('dim', wrap(`- ${line}`, 2, columnsOf(stream)), stream)}\n`)
    try {
      const { report, text } =
        resume === undefined
          ? await runAgent({ turns, parallel, dir, progress, policy })
          : await resumeOwn({ file: resume, dir, progress })
      process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `\n${text()}\n`)
      return report.ok ? 0 : 1
    } catch (error) {
      if (error instanceof UsageError) throw error
      // An act that failed or hung: the run proves nothing, and says which act it was.
      const message = error instanceof Error ? error.message : String(error)
      if (json) process.stdout.write(`${JSON.stringify({ ok: false, error: message }, null, 2)}\n`)
      process.stderr.write(`demo: stopped: ${message}\n`)
      return 1
    }
  },
}

async function runAgent(options: DemoOptions) {
  const { runDemo } = await importOnHost('demo', () => import('./demo.ts'))
  const { demoText } = await import('./demo-text.ts')
  const report = await runDemo(options)
  return { report, text: () => demoText(report) }
}

async function resumeOwn(options: ResumeOptions) {
  const { resumeLog } = await importOnHost('demo', () => import('./demo-resume.ts'))
  const { resumeText } = await import('./resume-text.ts')
  const report = await resumeLog(options)
  return { report, text: () => resumeText(report) }
}

const EXIT_CODES = `
Exit codes:
  0    every guarantee it shows was checked and held
  1    one did not hold, or a call of the resumed log is unresolved
  2    a wrong flag or value, an unreadable file, or missing harness packages
  130  stopped by Ctrl-C; the folder it wrote to is kept and named`
