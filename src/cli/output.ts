/** What becomes of a command whose output has no taker. */

/**
 * A reader that leaves early (`| head`) is no failure: the exit code still says what the run found. Output that cannot be
 * written for another reason, a full disk for one, is said once and makes exit code 1 of 0.
 */
export function guardOutput(): void {
  let said = false
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || said) return
    said = true
    process.stderr.write(`error: cannot write the output: ${error.message}\n`)
    // Last of all: the command ends in its own way first, and sets a code of its own.
    process.once('exit', () => (process.exitCode = Number(process.exitCode ?? 0) || 1))
  })
  // Whatever is wrong with it, there is nowhere left to say so; stdout and the exit code do not depend on it.
  process.stderr.on('error', () => {})
}
