/** The tarball as it would be published: built and packed in a clean copy of the repository. */
import { createHash } from 'node:crypto'
import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { exclusively } from './dsh-cli-hosts.ts'
import { CACHE, ROOT, succeed } from './dsh-cli-process.ts'

/** Not copied: what the build makes, and what only tests need. */
const LEFT_OUT = new Set(['node_modules', 'dist', 'coverage', 'bench-results', '.git', '.cache', '.ci', 'test'])
const KEPT_TARBALLS = 4

/**
 * Pack the project as it is now.
 * @returns path of the tarball; one and the same as long as no file changed.
 */
export async function packProject(): Promise<string> {
  const files = await listFiles(ROOT)
  const hash = createHash('sha256')
  for (const file of files)
    hash
      .update(relative(ROOT, file))
      .update('\0')
      .update(await readFile(file))
  const packs = join(CACHE, 'packs')
  const folder = join(packs, hash.digest('hex').slice(0, 16))
  await mkdir(packs, { recursive: true })
  return exclusively(join(packs, 'lock'), async () => {
    const known = await tarballIn(folder)
    if (known !== undefined) return known
    const stage = join(packs, `stage-${process.pid}`)
    try {
      await rename(await packIn(stage, files), folder)
    } finally {
      await rm(stage, { recursive: true, force: true })
    }
    await prune(packs)
    const packed = await tarballIn(folder)
    if (packed === undefined) throw new Error(`npm pack left no tarball in ${folder}`)
    return packed
  })
}

/** Build and pack a copy of the files; answers the folder of the tarball. */
async function packIn(stage: string, files: readonly string[]): Promise<string> {
  for (const file of files) await cp(file, join(stage, relative(ROOT, file)))
  await symlink(join(ROOT, 'node_modules'), join(stage, 'node_modules'))
  await succeed({ what: 'npm run build', command: 'npm', args: ['run', 'build'], cwd: stage, limitMs: 120_000 })
  const out = join(stage, 'packed')
  await mkdir(out)
  await succeed({
    what: 'npm pack',
    command: 'npm',
    args: ['pack', '--pack-destination', out],
    cwd: stage,
    limitMs: 60_000,
  })
  return out
}

async function listFiles(folder: string): Promise<string[]> {
  const files: string[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name) || entry.name.endsWith('.tgz')) continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) files.push(...(await listFiles(path)))
    else if (entry.isFile()) files.push(path)
  }
  return files.toSorted()
}

async function tarballIn(folder: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(() => [])
  const name = names.find((each) => each.endsWith('.tgz'))
  return name === undefined ? undefined : join(folder, name)
}

async function prune(packs: string): Promise<void> {
  const names = (await readdir(packs)).filter((name) => /^[0-9a-f]{16}$/.test(name))
  const aged = await Promise.all(names.map(async (name) => ({ name, at: (await stat(join(packs, name))).mtimeMs })))
  for (const { name } of aged.toSorted((a, b) => b.at - a.at).slice(KEPT_TARBALLS)) {
    await rm(join(packs, name), { recursive: true, force: true })
  }
}
