/** How a measuring command says that it could not go on. */
import { UsageError } from '../command.ts'
import { Interrupted } from '../interrupt.ts'

/**
 * Run a command; what fails on the way, a full disk for one, becomes a sentence and exit code 1.
 * @param name - command, in front of the sentence.
 */
export async function orStopped(name: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof UsageError || error instanceof Interrupted) throw error
    process.stderr.write(`${name}: stopped: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}
