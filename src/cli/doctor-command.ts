/** `doctor`: flags, output and exit code; what it does is imported when it runs. */
import { Option, type Command } from 'commander'
import type { CliCommand } from './command.ts'

interface DoctorFlags {
  readonly profile?: string
  readonly home?: string
  readonly dir?: string
  readonly config?: string
  readonly strict?: boolean
  readonly json?: boolean
  /** False with `--no-write`. */
  readonly write: boolean
}

/** Says what is mounted in a profile or project, what it loads, where its writes go, and what to change. */
export const doctorCommand: CliCommand = {
  name: 'doctor',
  summary: 'Examine a dsh profile or a harness project: what is mounted, what it loads, where its writes go.',

  configure(command: Command): void {
    command
      .addOption(
        new Option('--profile <name>', 'the dsh profile to examine (default: the current folder)').conflicts('dir'),
      )
      .option('--home <folder>', 'the dsh home it belongs to (default: DSH_HOME, else ~/.dsh)')
      .option('--dir <folder>', 'the profile folder or project to examine (default: the current folder)')
      .option('--config <file>', 'a file of rows, where a project has one under a name of its own')
      .option('--no-write', 'write no probe file into the folder of the session logs')
      .option('--strict', 'let warnings fail too')
      .option('--json', 'print one JSON document')
      .addHelpText('after', NOTES)
  },

  async run(options): Promise<number> {
    const { json = false, strict = false, ...flags } = options as unknown as DoctorFlags
    const { examine } = await import('./doctor/doctor.ts')
    const report = await examine({ ...flags, strict })
    if (json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
    else {
      const { doctorText } = await import('./doctor/text.ts')
      process.stdout.write(`${doctorText(report)}\n`)
    }
    return report.ok ? 0 : 1
  },
}

const NOTES = `
It starts nothing of the host. In a profile it asks the dsh installed there for the composed rows (--dump-config); it
writes, syncs and removes one small file where the session logs go. Values that may be secret are not printed.

Exit codes:
  0    no error (with --strict: no warning either)
  1    at least one
  2    a wrong flag, a file of rows that is not there, or neither a profile nor a project
  130  stopped by Ctrl-C; its probe file is removed`
