/** What a folder lies on, as far as the operating system tells. */
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** File system and device of a folder. */
export interface FileSystem {
  /** `ext4`, `tmpfs`; `unknown` where the system does not say. */
  readonly type: string
  readonly mountPoint?: string
  /** Device or share as the mount names it. */
  readonly source?: string
  readonly options: readonly string[]
  readonly device?: Device
}

/** The block device below it. */
interface Device {
  readonly name: string
  /** `physical`: nothing known stands between; `virtual`: a hypervisor's; `loop`: a file; `memory`: RAM. */
  readonly kind: 'physical' | 'virtual' | 'loop' | 'memory'
  readonly rotational?: boolean
  /** Whether the kernel sends flushes to it: `write back` yes, `write through` it has no volatile cache, or says so. */
  readonly writeCache?: string
}

/** Look up the file system of a folder. Linux tells; elsewhere the type is `unknown`. */
export function describeFileSystem(folder: string): FileSystem {
  const path = resolve(folder)
  const mount = readMounts()
    .filter(({ mountPoint }) => mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`))
    // The longest mount point holds the folder; of equal ones the last was mounted over the others.
    .reduce<Mount | undefined>(
      (best, mount) => (best === undefined || mount.mountPoint.length >= best.mountPoint.length ? mount : best),
      undefined,
    )
  if (mount === undefined) return { type: 'unknown', options: [] }
  const { type, mountPoint, source, options } = mount
  return { type, mountPoint, source, options, device: describeDevice(statSync(path).dev) }
}

interface Mount {
  readonly type: string
  readonly mountPoint: string
  readonly source: string
  readonly options: readonly string[]
}

/** See proc(5): optional fields end with a dash. */
function readMounts(): Mount[] {
  const lines = read('/proc/self/mountinfo')?.trimEnd().split('\n') ?? []
  return lines.flatMap((line) => {
    const fields = line.split(' ')
    const dash = fields.indexOf('-', 6)
    const [type, source, superOptions = ''] = fields.slice(dash + 1)
    if (dash === -1 || type === undefined || source === undefined) return []
    return [
      {
        type,
        source,
        mountPoint: unescape(fields[4] ?? ''),
        options: [...(fields[5] ?? '').split(','), ...superOptions.split(',')],
      },
    ]
  })
}

/** Spaces and the like are written in octal. */
function unescape(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function describeDevice(dev: number): Device | undefined {
  // Linux' dev_t as stat gives it.
  const major = (dev >>> 8) & 0xfff
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00)
  const link = `/sys/dev/block/${major}:${minor}`
  let path: string
  try {
    path = readlinkSync(link)
  } catch {
    // No block device below: tmpfs, overlay, a network share, or another operating system.
    return undefined
  }
  const name = path.split('/').at(-1) ?? path
  const queue = read(`${link}/queue/rotational`) === undefined ? `${link}/../queue` : `${link}/queue`
  const rotational = read(`${queue}/rotational`)?.trim()
  return {
    name,
    kind: kindOf(path, name),
    rotational: rotational === undefined ? undefined : rotational === '1',
    writeCache: read(`${queue}/write_cache`)?.trim(),
  }
}

function kindOf(path: string, name: string): Device['kind'] {
  if (/^(zram|ram|pmem)/.test(name)) return 'memory'
  if (name.startsWith('loop')) return 'loop'
  return /\/(virtio|vbd-|xen|vmbus)/i.test(path) || /^(vd|xvd)/.test(name) || isGuest() ? 'virtual' : 'physical'
}

/** The processor says so to guests of a hypervisor. */
function isGuest(): boolean {
  return /^flags.*\bhypervisor\b/m.test(read('/proc/cpuinfo') ?? '')
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Not there, or not for us: then it is not known.
    return undefined
  }
}
