/** A signal that asks the process to end, by Ctrl-C or from outside, and what a command leaves behind then. */

/** The run was stopped from outside. */
export class Interrupted extends Error {
  override name = 'Interrupted'
  /** As a shell reports it. */
  readonly exitCode: number

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`)
    this.exitCode = SIGNALS[signal as keyof typeof SIGNALS]
  }
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
/** How long the act under way may take to end after the signal. */
const GRACE_MS = 2_000

/**
 * Hear of every such signal; the process then does not end by itself.
 * @returns ends it.
 */
export function onInterrupt(stop: (reason: Interrupted) => void): () => void {
  const listener = (signal: NodeJS.Signals) => stop(new Interrupted(signal))
  const signals = Object.keys(SIGNALS) as NodeJS.Signals[]
  for (const signal of signals) process.on(signal, listener)
  return () => {
    for (const signal of signals) process.off(signal, listener)
  }
}

/**
 * Do work that leaves something behind, and clear that away, whatever happens.
 * @param cleanUp - once at the end, or before the process exits, when the work does not end within a grace.
 * @param work - is to end when its signal is aborted.
 * @throws {@link Interrupted} after a signal.
 */
export async function interruptible<T>(cleanUp: () => void, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  let forced: NodeJS.Timeout | undefined
  const ignore = onInterrupt((reason) => {
    const leave = () => {
      cleanUp()
      process.exit(reason.exitCode)
    }
    // Asked twice, or the act under way hangs.
    if (controller.signal.aborted) leave()
    forced = setTimeout(leave, GRACE_MS)
    controller.abort(reason)
  })
  try {
    const result = await work(controller.signal)
    controller.signal.throwIfAborted()
    return result
  } catch (error) {
    // What fails after a signal fails because of it.
    throw controller.signal.aborted ? controller.signal.reason : error
  } finally {
    clearTimeout(forced)
    ignore()
    cleanUp()
  }
}
