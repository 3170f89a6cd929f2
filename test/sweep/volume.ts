/** Small file systems of a test's own: mounted, damaged and taken away again. Needs root and `mount`. */
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { requirement } from '../support/require.ts'

/** Run a tool; its stderr is part of the error. */
export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Whether this process may mount and has the tools that damage; if not, tests of disk faults are skipped. */
export const canMount = requirement(
  'the right to mount a file system (root, with mount, chattr and prlimit)',
  inScratch((folder) => {
    run('sh', '-c', 'command -v chattr && command -v prlimit')
    run('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
    run('umount', folder)
  }),
)

/** Whether a block device with ext4 can be made of a file, which freezing and thin disks need. */
export const canLoop =
  canMount &&
  requirement(
    'ext4 on a loop device (mkfs.ext4, losetup, fsfreeze)',
    inScratch((folder) => {
      const mount = `${folder}/mount`
      run('truncate', '-s', '1M', `${folder}/image`)
      run('mkfs.ext4', '-q', `${folder}/image`)
      mkdirSync(mount)
      run('mount', '-o', 'loop', `${folder}/image`, mount)
      run('fsfreeze', '-f', mount)
      run('fsfreeze', '-u', mount)
      run('umount', mount)
    }),
  )

/** Whether something works, tried in a folder that goes with the attempt. */
function inScratch(act: (folder: string) => void): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-tries-'))
  const worked = tries(() => act(folder))
  tries(() => rmSync(folder, { recursive: true }))
  return worked
}

/** A mounted file system; it goes with the test, and with the test's process however that ends. */
export class Volume {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  /** A tmpfs of a few KiB. */
  static tmpfs(kibibytes = 256): Volume {
    return Volume.#mount((path) => run('mount', '-t', 'tmpfs', '-o', `size=${kibibytes}k`, 'tmpfs', path))
  }

  /** ext4 in a file. */
  static ext4(image: string, { journal = false } = {}): Volume {
    run('truncate', '-s', '8M', image)
    run('mkfs.ext4', '-q', '-O', journal ? 'has_journal' : '^has_journal', '-E', 'lazy_itable_init=0', image)
    return Volume.#mount((path) => run('mount', '-o', 'loop', image, path))
  }

  static #mount(mount: (path: string) => void): Volume {
    const path = mkdtempSync(join(tmpdir(), 'dsh-volume-'))
    mount(path)
    // Thaws and unmounts when this process is gone, even by SIGKILL: its stdin ends.
    const keeper = spawn(
      'sh',
      ['-c', `read _; fsfreeze -u "${path}" 2>/dev/null; umount -l "${path}" 2>/dev/null; rmdir "${path}"`],
      {
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    )
    const volume = new Volume(path)
    onTestFinished(async () => {
      const gone = new Promise((resolve) => void keeper.once('exit', resolve))
      keeper.stdin.end()
      await gone
    })
    return volume
  }

  /** Writes hang, in the kernel, until {@link thaw}; not even SIGKILL ends them. ext4 only. */
  freeze(): void {
    run('fsfreeze', '-f', this.path)
    // Before anything waits for a process that hangs here.
    onTestFinished(() => this.thaw())
  }

  /** Let hanging writes go on. */
  thaw(): void {
    tries(() => run('fsfreeze', '-u', this.path))
  }

  /** Folder for session logs. */
  get logs(): string {
    return join(this.path, 'logs')
  }

  /** Write until not one more byte fits. */
  fill(): void {
    const file = openSync(join(this.path, 'ballast'), 'a')
    try {
      for (const size of [64 * 1024, 4096, 512, 1]) while (tries(() => writeAll(file, size)));
    } finally {
      closeSync(file)
    }
  }

  /** Take away what {@link fill} wrote. */
  empty(): void {
    rmSync(join(this.path, 'ballast'))
  }
}

function writeAll(file: number, size: number): void {
  if (writeSync(file, Buffer.alloc(size, '.')) < size) throw new Error('short write')
}

function tries(act: () => void): boolean {
  try {
    act()
    return true
  } catch {
    // Whatever it is that is missing here, the caller says what it was needed for.
    return false
  }
}
