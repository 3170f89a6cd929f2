#!/usr/bin/env node
/** The executable: one entry of `COMMANDS` per command. */
import { Command, CommanderError } from 'commander'
import { SCOPE_NAME, SCOPE_VERSION } from '../semconv.ts'
import { benchCommand } from './bench-command.ts'
import { Interrupted } from './interrupt.ts'
import { EXIT_USAGE, UsageError, type CliCommand } from './command.ts'
import { demoCommand } from './demo-command.ts'
import { doctorCommand } from './doctor-command.ts'
import { assertNode } from './host.ts'
import { guardOutput } from './output.ts'
import { tuneCommand } from './tune-command.ts'

const COMMANDS: readonly CliCommand[] = [demoCommand, benchCommand, tuneCommand, doctorCommand]

guardOutput()
process.exitCode = await main(process.argv)

/** Run one command line; the process then ends by itself, with nothing left open. */
async function main(argv: readonly string[]): Promise<number> {
  let code = 0
  const program = new Command(SCOPE_NAME)
    .description('What checkpoint barriers of DeepSeek Harness agents cost, and what they hold.')
    .version(SCOPE_VERSION)
    .showHelpAfterError('(--help lists the commands and flags)')
    .exitOverride()
  for (const entry of COMMANDS) {
    const command = program.command(entry.name).description(entry.summary).allowExcessArguments(false)
    entry.configure(command)
    command.action(async () => {
      refuseEmpty(command)
      code = await entry.run(command.opts(), command.args)
    })
  }
  try {
    assertNode()
    await program.parseAsync(argv)
    return code
  } catch (error) {
    // commander has said what is wrong; help and version end here too, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
    if (error instanceof Interrupted) return error.exitCode
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`error: ${error.message}\n`)
    return EXIT_USAGE
  }
}

/** A variable that is not set leaves an empty value behind, and the current folder is not what it meant. */
function refuseEmpty(command: Command): void {
  const empty = command.options.find((option) => command.getOptionValue(option.attributeName()) === '')
  if (empty !== undefined) throw new UsageError(`${empty.long ?? empty.flags}: the value is empty`)
  if (command.args.includes('')) throw new UsageError(`${command.name()}: an argument is empty`)
}
