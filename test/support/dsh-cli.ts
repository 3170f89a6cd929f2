/** A profile of the real CLI in a home of its own, with the packed policy added to it. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CheckpointRecord, SettledBarrier } from '../../src/barrier.ts'
import type { ProbeLine } from './dsh-cli-probe.ts'
import { packProject } from './dsh-cli-pack.ts'
import { ROOT, run, start, succeed, type Finished, type Running } from './dsh-cli-process.ts'

/** Row ids of the bundle patch and of the stock policy. */
export const OUR_ROW = 'session-checkpoint-otel'
export const STOCK_ROW = 'session-checkpoint-policy'

const PROFILE = 'headless'
/** pnpm asks the registry for the dependencies of the tarball. */
const PLUGIN_LIMIT_MS = 120_000
const TASK_LIMIT_MS = 60_000

/** One home. */
export class DshHome {
  /** Folder the tasks run in. */
  readonly workspace: string
  /** Folder of the profile. */
  readonly profile: string
  readonly #home: string
  readonly #bin: string
  readonly #lines: string

  private constructor(cli: string, home: string) {
    this.#home = home
    this.#bin = join(cli, 'node_modules/@deepseek-ai/dsh/lib/bin.js')
    this.workspace = join(home, 'workspace')
    this.profile = join(home, 'profiles', PROFILE)
    this.#lines = join(home, 'probe.jsonl')
  }

  /** @param cli - folder the CLI is installed in. */
  static async create(cli: string): Promise<DshHome> {
    const home = new DshHome(cli, await mkdtemp(join(tmpdir(), 'dsh-home-')))
    await mkdir(home.workspace)
    return home
  }

  /** A home whose headless profile has the packed policy added. */
  static async withPolicy(cli: string): Promise<DshHome> {
    const home = await DshHome.create(cli)
    await home.plugin('add', await packProject())
    return home
  }

  /** `dsh plugin --profile headless ...`. */
  plugin(...args: readonly string[]): Promise<Finished> {
    return succeed({ ...this.#command(['plugin', '--profile', PROFILE, ...args]), limitMs: PLUGIN_LIMIT_MS })
  }

  /** The composed rows, and what was said on the way. */
  dumpConfig(): Promise<Finished> {
    return run(this.#command(['--profile', PROFILE, '--dump-config']))
  }

  /** Write the profile's own patch: the probe, then these rows. */
  async patch(...rows: readonly object[]): Promise<void> {
    const probe = { id: 'probe', name: supportPlugin('probe'), config: { file: this.#lines } }
    await writeFile(
      join(this.profile, 'cordis.patch.yml'),
      JSON.stringify([{ insert: [probe] }, ...rows], undefined, 2),
    )
  }

  /** Leave no patch of ours in the profile. */
  async unpatch(): Promise<void> {
    await writeFile(join(this.profile, 'cordis.patch.yml'), '[]\n')
  }

  /** package.json of the profile; pnpm drops a list of dependencies that became empty. */
  async manifest(): Promise<object> {
    const manifest = JSON.parse(await readFile(join(this.profile, 'package.json'), 'utf8')) as object
    return { dependencies: {}, ...manifest }
  }

  /** Start one task. */
  start(task: string, modelUrl: string, env: Readonly<Record<string, string>> = {}): Running {
    return start(this.#command(['--profile', PROFILE, task], { DEEPSEEK_BASE_URL: modelUrl, ...env }))
  }

  /** Resume a session in place of starting one, with these rows in the profile. */
  async resume(session: string, task: string, modelUrl: string, ...rows: readonly object[]): Promise<Finished> {
    const runner = { id: 'resume', name: supportPlugin('resume'), config: { session, task } }
    await this.patch({ id: 'headless-runner', disabled: true }, { insert: [runner] }, ...rows)
    return this.start(task, modelUrl).finished
  }

  /** What the probe has written so far. */
  async lines(): Promise<ProbeLine[]> {
    const text = await readFile(this.#lines, 'utf8').catch(() => '')
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as ProbeLine)
  }

  async records(): Promise<CheckpointRecord[]> {
    return (await this.lines()).flatMap((line) => ('record' in line ? [line.record] : []))
  }

  async barriers(): Promise<SettledBarrier[]> {
    return (await this.records()).filter((record) => record.kind === 'barrier')
  }

  /** Where the Prometheus plugin of the running task serves. */
  async metricsUrl(): Promise<string | undefined> {
    const lines = await this.lines()
    const urls = lines.flatMap((line) =>
      'log' in line ? (/http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(line.log.text) ?? []) : [],
    )
    return urls.at(-1)
  }

  /** Forget what the probe has written. */
  async clear(): Promise<void> {
    await rm(this.#lines, { force: true })
  }

  async remove(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true })
  }

  #command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    return {
      what: `dsh ${args.join(' ')}`,
      command: process.execPath,
      args: [this.#bin, ...args],
      cwd: this.workspace,
      limitMs: TASK_LIMIT_MS,
      env: {
        DSH_HOME: this.#home,
        DSH_TELEMETRY_DISABLED: '1',
        // The machine may offer no sandbox for bash.
        DSH_PERMISSION_MODE: 'danger-full-access',
        DEEPSEEK_API_KEY: 'none',
        // The probe is TypeScript.
        NODE_OPTIONS: '--disable-warning=ExperimentalWarning',
        ...env,
      },
    }
  }
}

function supportPlugin(name: string): string {
  return pathToFileURL(join(ROOT, `test/support/dsh-cli-${name}.ts`)).href
}

/** Barriers of the conversation itself: the title request runs beside it, in no fixed order. */
export function conversation(barriers: readonly SettledBarrier[]): SettledBarrier[] {
  return barriers.filter((barrier) => barrier.purpose === undefined)
}

/** `1.2 tool bash`: turn, step, boundary, tool. */
export function pathOf({ turn, step, boundary, toolName }: SettledBarrier): string {
  return `${turn}.${step} ${boundary}${toolName === undefined ? '' : ` ${toolName}`}`
}
