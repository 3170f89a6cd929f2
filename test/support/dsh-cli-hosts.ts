/** Host sets: folders with published packages, installed once and kept in the cache. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CACHE, succeed } from './dsh-cli-process.ts'
import { requirement } from './require.ts'

/** One set of packages to install. */
export interface HostSet {
  readonly name: string
  readonly manager: 'npm' | 'pnpm'
  /** package.json of the folder. */
  readonly manifest: Readonly<Record<string, unknown>>
  readonly args?: readonly string[]
}

/** An installed set, or why it is not there. */
export type InstalledHost = { readonly folder: string } | { readonly missing: string }

const INSTALL_LIMIT_MS = 240_000

/** The real CLI. Plain npm does not finish; without the overrides its plugins ask for releases that do not exist. */
const DSH_CLI: HostSet = {
  name: 'dsh-cli',
  manager: 'pnpm',
  manifest: {
    private: true,
    dependencies: { '@deepseek-ai/dsh': '0.1.0-rc.8' },
    pnpm: { overrides: { '@deepseek-ai/cordis-plugin-hmr': '1.0.16', '@deepseek-ai/cordis-plugin-loader': '1.0.2' } },
  },
}

/** Install a set, or find it installed. Never throws: what cannot be installed here is a fact to report. */
export async function installHost(set: HostSet): Promise<InstalledHost> {
  const folder = join(CACHE, 'hosts', set.name)
  try {
    await mkdir(folder, { recursive: true })
    await exclusively(`${folder}.lock`, () => install(set, folder))
    return { folder }
  } catch (error) {
    return { missing: `host set ${set.name}: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Folder of the real CLI, with the pnpm it needs on the path; nothing, said in a line, where it cannot be installed. */
export async function findCli(): Promise<string | undefined> {
  const cli = await installPnpm().then(
    () => installHost(DSH_CLI),
    (error: unknown): InstalledHost => ({ missing: String(error) }),
  )
  if (requirement('missing' in cli ? `the real dsh CLI (${cli.missing})` : 'the real dsh CLI', 'folder' in cli)) {
    return 'folder' in cli ? cli.folder : undefined
  }
  return undefined
}

/** pnpm 10, which the CLI forwards plugin commands to; found on the path of every process we start. */
async function installPnpm(): Promise<void> {
  const folder = join(CACHE, 'tools')
  await mkdir(folder, { recursive: true })
  await exclusively(`${folder}.lock`, async () => {
    if (existsSync(join(folder, 'node_modules/.bin/pnpm'))) return
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, 'pnpm@10.34.9']
    await succeed({ what: 'npm install pnpm', command: 'npm', args, cwd: folder, limitMs: INSTALL_LIMIT_MS })
  })
}

async function install(set: HostSet, folder: string): Promise<void> {
  const text = JSON.stringify({ name: `host-${set.name}`, ...set.manifest }, undefined, 2)
  const stamp = createHash('sha256')
    .update(JSON.stringify([set.manager, set.args, text]))
    .digest('hex')
  if ((await readFile(join(folder, '.installed'), 'utf8').catch(() => '')) === stamp) return
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), text)
  if (set.manager === 'pnpm') await installPnpm()
  const flags = set.manager === 'npm' ? ['--no-audit', '--no-fund'] : ['--ignore-workspace']
  const args = ['install', ...flags, ...(set.args ?? [])]
  await succeed({
    what: `${set.manager} install of ${set.name}`,
    command: set.manager,
    args,
    cwd: folder,
    limitMs: INSTALL_LIMIT_MS,
  })
  await writeFile(join(folder, '.installed'), stamp)
}

/** One process at a time; a lock whose owner is gone is taken over. */
export async function exclusively<T>(lock: string, action: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + INSTALL_LIMIT_MS + 30_000
  for (;;) {
    try {
      const file = await open(lock, 'wx')
      await file.writeFile(String(process.pid))
      await file.close()
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (Date.now() > deadline) throw new Error(`${lock} is held for too long`, { cause: error })
      const owner = Number(await readFile(lock, 'utf8').catch(() => ''))
      if (owner > 0 && !isAlive(owner)) await rm(lock, { force: true })
      else await pause(100)
    }
  }
  try {
    return await action()
  } finally {
    await rm(lock, { force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    // ESRCH: no such process. Ours run under one user, so EPERM cannot arrive.
    return false
  }
}
