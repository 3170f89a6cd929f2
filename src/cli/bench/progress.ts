/** Progress on stderr: one line that renews itself on a terminal, a line now and then elsewhere. */

/** A line of progress. */
export interface Progress {
  update(done: number, all: number, what: string): void
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
    update(done, all, what) {
      const now = performance.now()
      const left = done === 0 ? '' : `, ${Math.ceil(((now - startedAt) / done) * (all - done) / 1_000)} s left`
      const line = `${name}: ${done} of ${all}${left}; ${what}`
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
