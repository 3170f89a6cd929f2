/** What a command of the executable is, and how it says that it was called wrongly. */
import { InvalidArgumentError, type Command } from 'commander'

/**
 * One command. Its module declares options only: whatever is heavy is imported inside `run`, so that `--help` and
 * the other commands do not pay for it.
 */
export interface CliCommand {
  readonly name: string
  readonly summary: string
  /** Add options and arguments. */
  configure(command: Command): void
  /**
   * Do it.
   * @param options - the parsed options.
   * @param args - the arguments that belong to no option.
   * @returns the exit code: 0 it held, 1 it did not.
   * @throws UsageError for what only the caller can put right: exit code 2.
   */
  run(options: Record<string, unknown>, args: readonly string[]): Promise<number>
}

/** The call was wrong, or something it needs is not there. The message names the flag or the remedy. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Exit code of a wrong call. */
export const EXIT_USAGE = 2

/**
 * Parser of a whole number, for commander.
 * @param from - smallest value allowed.
 * @param to - largest value allowed.
 */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < from || value > to) {
      throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`)
    }
    return value
  }
}
