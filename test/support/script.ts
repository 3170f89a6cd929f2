/** Command lines of the npm scripts: flags, usage, and one sentence for a wrong call. */
import { Command, CommanderError } from 'commander'

/** Exit code of a wrong call. */
const EXIT_USAGE = 2

/**
 * Parse the command line; `--help` and a wrong call end the process, with exit code 0 and 2.
 * @param script - name of the npm script.
 */
export function parseScript(script: string, summary: string, configure: (command: Command) => void): Command {
  const command = new Command(`npm run ${script} --`).description(summary).allowExcessArguments(false).exitOverride()
  configure(command)
  try {
    return command.parse()
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // commander has said it.
    process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE)
  }
}
