/** What all copies of this module share: a hot reload loads the file again, but the process has one registry. */

/** State of the process. */
export interface ProcessState {
  /** Run `task` after every earlier one; starting and stopping never overlap. Its errors are the caller's alone. */
  enqueue(task: () => Promise<void>): Promise<void>
  /** Whether this sentence was not said before in this process. */
  isNews(message: string): boolean
}

/** The state of this process. */
export function processState(): ProcessState {
  const holder = globalThis as { [KEY]?: ProcessState }
  return (holder[KEY] ??= createState())
}

const KEY = Symbol.for('dsh-checkpoint-otel.node-sdk.1')
/** Sentences differ by names and versions only; past this many something else repeats them. */
const MAX_SAID = 64

function createState(): ProcessState {
  let last = Promise.resolve()
  const said = new Set<string>()
  return {
    enqueue(task) {
      const run = last.then(task)
      // The next task starts whatever became of this one.
      last = run.catch(() => {})
      return run
    },
    isNews(message) {
      if (said.has(message) || said.size >= MAX_SAID) return false
      said.add(message)
      return true
    },
  }
}
