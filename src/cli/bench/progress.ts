/** Progress on stderr: one line that renews itself on a terminal, a line now and then elsewhere. */

/** A line of progress. */
export interface Progress {
  /** @param done - part of the whole, 0 to 1. */
  update(done: number, what: string): void
  /** Remove the line. */
  end(): void
}

/** Least time between two lines where nobody watches. */
const QUIET_MS = 5_000
const COLUMNS = 80

/** @param name - command, in front of each line. */
export function createProgress(name: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  const startedAt = performance.now()
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    update(done, what) {
      const now = performance.now()
      const left = done === 0 ? '' : `, ${Math.ceil((((now - startedAt) / done) * (1 - done)) / 1_000)} s left`
      const line = `${name}: ${(done * 100).toFixed(0)} %${left}; ${what}`
      if (stream.isTTY) {
        stream.write(`\r\u001B[K${line.slice(0, (stream.columns ?? COLUMNS) - 1)}`)
      } else if (now - toldAt >= QUIET_MS) {
        stream.write(`${line}\n`)
        toldAt = now
      }
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001B[K')
    },
  }
}
