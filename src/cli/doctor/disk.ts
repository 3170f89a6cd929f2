/** The folder of the session logs and the file system it is on. */
import { existsSync, readFileSync, realpathSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'

/** Kinds of storage that promise different things. */
type StorageKind = 'local' | 'memory' | 'overlay' | 'network' | 'shared' | 'unknown'

/** The file system below a folder. */
export interface FileSystem {
  readonly name: string
  readonly kind: StorageKind
  readonly freeBytes: number
  /** A mount option that takes the meaning out of a sync. */
  readonly weakOption?: string
}

/** Magic numbers of Linux, from statfs(2). */
const LINUX: Readonly<Record<number, readonly [name: string, kind: StorageKind]>> = {
  0xef53: ['ext2/3/4', 'local'],
  0x58465342: ['xfs', 'local'],
  0x9123683e: ['btrfs', 'local'],
  0x2fc12fc1: ['zfs', 'local'],
  0xf2f52010: ['f2fs', 'local'],
  0xca451a4e: ['bcachefs', 'local'],
  0x01021994: ['tmpfs', 'memory'],
  0x858458f6: ['ramfs', 'memory'],
  0x794c7630: ['overlay', 'overlay'],
  0x6969: ['nfs', 'network'],
  0xff534d42: ['cifs', 'network'],
  0xfe534d42: ['smb', 'network'],
  0x517b: ['smb', 'network'],
  0x00c36400: ['ceph', 'network'],
  0x0bd00bd0: ['lustre', 'network'],
  0x47504653: ['gpfs', 'network'],
  0x65735546: ['fuse', 'shared'],
  0x01021997: ['9p', 'shared'],
  0x786f4256: ['vboxsf', 'shared'],
}

/** The folder itself, or the nearest one above it that exists: the backend makes the rest at its first session. */
export function existingFolder(folder: string): string {
  let current = folder
  while (!existsSync(current) && dirname(current) !== current) current = dirname(current)
  return realpathSync(current)
}

/** The temporary folder, for want of the backend's. */
export function temporaryFolder(): string {
  return realpathSync(tmpdir())
}

/** Ask the kernel; `unknown` where its numbers are not known. */
export function fileSystemOf(folder: string): FileSystem {
  const { type, bavail, bsize } = statfsSync(folder)
  const freeBytes = bavail * bsize
  const known = process.platform === 'linux' ? LINUX[type >>> 0] : undefined
  if (known === undefined) return { name: `type 0x${(type >>> 0).toString(16)}`, kind: 'unknown', freeBytes }
  const mount = mountOf(folder)
  const [name, kind] = known
  return {
    name: kind === 'local' || kind === 'shared' ? (mount?.type ?? name) : name,
    kind,
    freeBytes,
    weakOption: mount?.weakOption,
  }
}

function mountOf(folder: string): { readonly type: string; readonly weakOption?: string } | undefined {
  try {
    let best: string[] | undefined
    for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
      const fields = line.split(' ')
      const point = fields[4]?.replaceAll(String.raw`\040`, ' ')
      if (point === undefined || !(folder === point || folder.startsWith(point === '/' ? '/' : `${point}/`))) continue
      // A later mount on the same point covers an earlier one.
      if (best === undefined || point.length >= (best[4] ?? '').length) best = fields
    }
    const dash = best?.indexOf('-') ?? -1
    const type = best?.[dash + 1]
    if (best === undefined || type === undefined) return undefined
    const options = `${best[5] ?? ''},${best[dash + 3] ?? ''}`.split(',')
    return { type, weakOption: options.find((option) => option === 'nobarrier' || option === 'barrier=0') }
  } catch {
    // No proc here: the name from statfs has to do.
    return undefined
  }
}
