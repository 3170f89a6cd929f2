/** `bench`: flags, output and exit code; what it does is imported when it runs. */
import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { Option, type Command } from 'commander'
import { orStopped } from './bench/stopped.ts'
import { UsageError, wholeNumber, type CliCommand } from './command.ts'
import { importOnHost } from './host.ts'

const STRATEGY_NAMES = ['stock', 'default', 'coalesced', 'pipelined', 'selective']
const ENCODING_NAMES = ['zstd', 'raw', 'sqlite']
const WORKLOAD_NAMES = ['one-call', 'three-calls', 'parallel', 'assembly', 'tool-time']
const MAX_ROUNDS = 200
const MAX_DELAY_MS = 60_000
const FULL = { rounds: 9, steps: 12 } as const
const QUICK = { rounds: 3, steps: 4 } as const

/** Flags as given. */
export interface BenchFlags {
  readonly dir?: string
  readonly json?: boolean
  readonly html?: string
  readonly quick?: boolean
  readonly rounds?: number
  readonly strategy?: readonly string[]
  readonly encoding?: readonly string[]
  readonly delay?: readonly number[]
  readonly workload?: readonly string[]
}

/** Measures what barriers cost on one's own disk. */
export const benchCommand: CliCommand = {
  name: 'bench',
  summary: 'Measure what barriers cost on this disk, with each strategy and backend setting.',

  configure(command: Command): void {
    const delay = wholeNumber(1, MAX_DELAY_MS)
    command
      .option('--dir <folder>', 'measure the disk this folder is on (default: the temporary folder of the system)')
      .option('--quick', 'one workload or those named, few rounds: a first look')
      .addOption(
        new Option('--rounds <n>', `rounds (default: ${FULL.rounds}, with --quick ${QUICK.rounds})`).argParser(
          wholeNumber(2, MAX_ROUNDS),
        ),
      )
      .addOption(
        new Option('--strategy <name...>', 'only these; the first measured is what others are held against').choices(
          STRATEGY_NAMES,
        ),
      )
      .addOption(new Option('--encoding <name...>', 'only these encodings of the log').choices(ENCODING_NAMES))
      .addOption(
        new Option('--delay <ms...>', 'write-behind delays (default: 200 5)').argParser<readonly number[] | undefined>(
          (text, list) => [...(list ?? []), delay(text)],
        ),
      )
      .addOption(new Option('--workload <name...>', 'only these kinds of turns').choices(WORKLOAD_NAMES))
      .option('--html <file>', 'also write a report with charts, in one file')
      .option('--json', 'print one JSON document')
      .addHelpText('after', EXIT_CODES)
  },

  run: (options) => orStopped('bench', () => bench(options as BenchFlags)),
}

async function bench(flags: BenchFlags): Promise<number> {
  const { html, json = false } = flags
  // Before anything is measured: a report that cannot be written is worth no minute of waiting.
  if (html !== undefined) assertWritable(html)
  const { measure } = await importOnHost('bench', () => import('./bench/bench.ts'))
  const defaults = flags.quick === true ? QUICK : FULL
  const report = await measure({
    ...defaults,
    ...flags,
    workload: flags.workload ?? (flags.quick === true ? ['one-call'] : undefined),
  })
  const { benchText } = await import('./bench/text.ts')
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `\n${benchText(report)}\n`)
  if (html !== undefined) {
    const { benchHtml } = await import('./bench/html.ts')
    attempt(html, () => writeFileSync(html, benchHtml(report)))
    process.stderr.write(`The report with charts: ${html}\n`)
  }
  return 0
}

/** Nothing is left behind: a run that is stopped leaves no empty report, and keeps the one of an earlier run. */
function assertWritable(html: string): void {
  const isThere = attempt(html, () => statSync(html, { throwIfNoEntry: false }))
  if (isThere?.isDirectory() === true || /[/\\]$/.test(html))
    throw new UsageError(`--html: ${html} is a folder; name a file`)
  if (isThere?.isFile() === false) throw new UsageError(`--html: ${html} is no regular file`)
  attempt(html, () => closeSync(openSync(html, isThere === undefined ? 'ax' : 'a')))
  if (isThere === undefined) rmSync(html)
}

function attempt<T>(html: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw new UsageError(
      `--html: ${html} cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
    )
  }
}

const EXIT_CODES = `
It writes to a folder of its own below --dir and removes it, after Ctrl-C too.

Exit codes:
  0    it was measured; whether the machine was quiet enough to conclude, the report says
  1    the disk or the harness failed on the way
  2    a wrong flag or value, a folder that cannot be written, or missing harness packages
  130  stopped by Ctrl-C`
