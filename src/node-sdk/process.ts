/** What all copies of this module share: a hot reload loads the file again, but the process has one registry. */

/** State of the process. */
export interface ProcessState {
  /** Run `task` after every earlier one: taking the globals and giving them back never overlap. Errors are the caller's. */
  enqueue(task: () => Promise<void>): Promise<void>
  /** Whether this sentence was not said before in this process. */
  isNews(message: string): boolean
  /** What this plugin put into the registry, whichever copy of it did. */
  readonly own: WeakSet<object>
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
    own: new WeakSet(),
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
