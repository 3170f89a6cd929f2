/** Child processes that end: a limit for each, a message that says which one and what it printed last. */
import { spawn, type ChildProcess } from 'node:child_process'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Installed hosts and packed tarballs, kept between runs and clones. */
export const CACHE = process.env['DSH_CHECKPOINT_CACHE'] ?? join(homedir(), '.cache', 'dsh-checkpoint-otel')

/** How a process ended. */
export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A process of ours. */
export interface Running {
  readonly child: ChildProcess
  /** Resolves at its end; rejects when it outlives its limit. */
  readonly finished: Promise<Finished>
}

/** What to start. */
export interface Command {
  /** In words, for the message. */
  readonly what: string
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly limitMs: number
}

const KEPT_CHARACTERS = 200_000

/** Start a process in a group of its own. */
export function start({ what, command, args, cwd, env, limitMs }: Command): Running {
  const child = spawn(command, args, {
    cwd,
    env: { ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout = (stdout + text).slice(-KEPT_CHARACTERS)))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-KEPT_CHARACTERS)))
  const finished = new Promise<Finished>((resolve, reject) => {
    const tail = () => `${stdout}\n${stderr}`.trim().slice(-2_000)
    const limit = setTimeout(() => {
      killGroup(child)
      reject(new Error(`${what} did not end within ${limitMs / 1_000} s; it printed last:\n${tail()}`))
    }, limitMs)
    child.on('error', (error) => {
      clearTimeout(limit)
      reject(new Error(`${what} cannot start: ${error.message}`))
    })
    child.on('close', (code) => {
      clearTimeout(limit)
      resolve({ code, stdout, stderr })
    })
  })
  // A caller that looks only later must not bring the test process down.
  finished.catch(() => undefined)
  return { child, finished }
}

/** Run a process to its end. */
export async function run(command: Command): Promise<Finished> {
  return start(command).finished
}

/** Run a process that must succeed. */
export async function succeed(command: Command): Promise<Finished> {
  const result = await run(command)
  if (result.code === 0) return result
  const printed = `${result.stdout}\n${result.stderr}`.trim().slice(-4_000)
  throw new Error(`${command.what} ended with ${result.code}:\n${printed}`)
}

/** End a process and all it started. */
export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // ESRCH: the whole group is gone already.
  }
}

/** Our environment without what would steer the harness, npm or Node; this Node first on the path. */
function inherited(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      !/^(DSH_|DEEPSEEK_|OTEL_|npm_(?!config_)|NODE_(OPTIONS|PATH|ENV)$|VITEST|INIT_CWD)/i.test(entry[0]),
  )
  const env = Object.fromEntries(kept)
  return { ...env, PATH: [dirname(process.execPath), join(CACHE, 'tools/node_modules/.bin'), env['PATH']].join(':') }
}
