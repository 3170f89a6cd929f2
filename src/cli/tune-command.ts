/** `tune LOG…`: flags, output and exit code; what it does is imported when it runs. */
import { Option, type Command } from 'commander'
import type { StrategyName } from './bench/variants.ts'
import { orStopped } from './bench/stopped.ts'
import { UsageError, wholeNumber, type CliCommand } from './command.ts'
import { importOnHost } from './host.ts'

const RECORDED = ['stock', 'default', 'coalesced', 'pipelined', 'selective']
const MAX_TURNS = 100
const MAX_SECONDS = 3_600
const MAX_ASSEMBLY_MS = 10_000

interface TuneFlags {
  readonly dir?: string
  readonly json?: boolean
  readonly maxTurns: number
  readonly seconds: number
  readonly assembly: number
  readonly recorded?: StrategyName
}

/** Replays recorded turns under each strategy and setting, and recommends one. */
export const tuneCommand: CliCommand = {
  name: 'tune',
  summary: 'Replay the turns of recorded session logs under each strategy and setting, and recommend one.',

  configure(command: Command): void {
    command
      .argument('<log...>', 'session.jsonl or session.jsonl.zstd files, or folders to search for them')
      .option('--dir <folder>', 'replay on the disk this folder is on (default: the temporary folder of the system)')
      .addOption(
        new Option('--max-turns <n>', 'turns to replay, spread over the recorded ones')
          .default(6)
          .argParser(wholeNumber(1, MAX_TURNS)),
      )
      .addOption(new Option('--seconds <n>', 'time for the replays').default(48).argParser(wholeNumber(1, MAX_SECONDS)))
      .addOption(
        new Option(
          '--assembly <ms>',
          'time the host takes to put a prompt together: between the spans of step and request',
        )
          .default(0)
          .argParser(wholeNumber(0, MAX_ASSEMBLY_MS)),
      )
      .addOption(
        new Option('--recorded <strategy>', 'what the logs were recorded under (default: stock)').choices(RECORDED),
      )
      .option('--json', 'print one JSON document')
      .addHelpText('after', NOTES)
  },

  run: (options, paths) => orStopped('tune', () => replay(options as unknown as TuneFlags, paths)),
}

async function replay(options: TuneFlags, paths: readonly string[]): Promise<number> {
  const { json = false, ...flags } = options
  if (flags.recorded === 'stock' && !isInstalled(STOCK)) throw new UsageError(`--recorded: ${STOCK} is not installed`)
  const { tune } = await importOnHost('tune', () => import('./tune/tune.ts'))
  const report = await tune({ ...flags, paths })
  const { tuneText } = await import('./tune/text.ts')
  process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : `\n${tuneText(report)}\n`)
  return 0
}

const STOCK = '@deepseek-ai/dsh-session-checkpoint-policy'

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    // Not found.
    return false
  }
}

const NOTES = `
Of a log only sizes, times and overlaps are used; no text, name or id of it is kept or printed. A damaged log is
named and left out. It writes to a folder of its own below --dir and removes it, after Ctrl-C too.

Exit codes:
  0    it was replayed; whether it is sure of its recommendation, the report says
  1    the disk or the harness failed on the way
  2    a wrong flag or value, a missing file, nothing to replay, or missing harness packages
  130  stopped by Ctrl-C`
