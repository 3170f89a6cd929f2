/**
 * The ways a disk and a file system fail that can be made real here, each with how it breaks and how it is mended.
 * A table, and as long as the list of ways.
 */
import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { findLog } from './outside.ts'
import { SESSION } from './plan.ts'
import type { RemoteAgent } from './remote-agent.ts'
import type { RemotePlan } from './remote-protocol.ts'
import { run, Volume } from './volume.ts'

/** A disk that can be broken under a running agent. */
interface Breakable {
  readonly root: string
  readonly plan?: Partial<RemotePlan>
  break(agent: RemoteAgent): void
  mend(agent: RemoteAgent): void
}

/** One way to fail. */
export interface DiskFault {
  readonly name: string
  /** `error.type` that metrics and spans show. */
  readonly code: string
  /** `error.type` from the second refusal on, where it is another. */
  readonly later?: string
  /** What the model is told, where it is not the code. */
  readonly told?: string
  /** What has to be there beside the right to mount. */
  readonly needs?: 'loop'
  readonly create: () => Breakable
}

const NOBODY = 65_534

/** Every fault that heals without anything being done to the agent. */
export const DISK_FAULTS: readonly DiskFault[] = [
  {
    name: 'a full disk',
    code: 'ENOSPC',
    create() {
      const volume = Volume.tmpfs()
      return { root: volume.logs, break: () => volume.fill(), mend: () => volume.empty() }
    },
  },
  {
    name: 'a file system that became read-only',
    code: 'EROFS',
    create() {
      const volume = Volume.tmpfs()
      const remount = (how: string) => void run('mount', '-o', `remount,${how}`, volume.path)
      return { root: volume.logs, break: () => remount('ro'), mend: () => remount('rw') }
    },
  },
  {
    name: 'a disk with I/O errors, which the kernel makes read-only',
    code: 'EIO',
    later: 'EROFS',
    // The backend could not take the torn append back either, and says that.
    told: 'failed to roll back append',
    needs: 'loop',
    create() {
      // Thin: the image is a sparse file on a file system that has no block left for it.
      const below = Volume.tmpfs(2_048)
      const image = `${below.path}/image`
      const volume = Volume.ext4(image, { journal: true })
      return {
        root: volume.logs,
        break: () => below.fill(),
        mend() {
          run('umount', volume.path)
          below.empty()
          // Exit code 1 says that it repaired something.
          run('sh', '-c', 'e2fsck -fy "$0" >/dev/null 2>&1; test $? -lt 2', image)
          run('mount', '-o', 'loop', image, volume.path)
        },
      }
    },
  },
  {
    name: 'a volume that was unmounted',
    code: 'ENOENT',
    needs: 'loop',
    create() {
      const below = Volume.tmpfs(8_192)
      const image = `${below.path}/image`
      const volume = Volume.ext4(image)
      return {
        root: volume.logs,
        break: () => void run('umount', volume.path),
        mend: () => void run('mount', '-o', 'loop', image, volume.path),
      }
    },
  },
  {
    name: 'a session folder that was moved away',
    code: 'ENOENT',
    create() {
      const volume = Volume.tmpfs()
      return {
        root: volume.logs,
        break: () => renameSync(volume.logs, `${volume.logs}-away`),
        mend: () => renameSync(`${volume.logs}-away`, volume.logs),
      }
    },
  },
  {
    name: 'a folder that became a file',
    code: 'ENOTDIR',
    create() {
      const volume = Volume.tmpfs()
      return {
        root: volume.logs,
        break() {
          renameSync(volume.logs, `${volume.logs}-away`)
          writeFileSync(volume.logs, '')
        },
        mend() {
          renameSync(volume.logs, `${volume.logs}-file`)
          renameSync(`${volume.logs}-away`, volume.logs)
        },
      }
    },
  },
  {
    name: 'a folder whose permissions were taken away',
    code: 'EACCES',
    create() {
      const volume = Volume.tmpfs()
      mkdirSync(volume.logs)
      chownSync(volume.logs, NOBODY, NOBODY)
      chmodSync(volume.path, 0o755)
      return {
        root: volume.logs,
        plan: { uid: NOBODY },
        break: () => chmodSync(volume.logs, 0),
        mend: () => chmodSync(volume.logs, 0o700),
      }
    },
  },
  {
    name: 'a log that was made immutable',
    code: 'EPERM',
    create() {
      const volume = Volume.tmpfs()
      const change = (flag: string) => void run('chattr', flag, findLog(volume.logs, SESSION) ?? '')
      return { root: volume.logs, break: () => change('+i'), mend: () => change('-i') }
    },
  },
  {
    name: 'a limit on the size of files',
    code: 'EFBIG',
    create() {
      const volume = Volume.tmpfs()
      const limit = ({ process }: RemoteAgent, size: string) =>
        void run('prlimit', '--pid', String(process.pid), `--fsize=${size}`)
      const size = () => statSync(findLog(volume.logs, SESSION) ?? '').size
      // Half a record still fits: the write is cut short, then refused.
      return {
        root: volume.logs,
        break: (agent) => limit(agent, `${size() + 1_000}:unlimited`),
        mend: (agent) => limit(agent, 'unlimited:unlimited'),
      }
    },
  },
  {
    name: 'no file descriptors left',
    code: 'EMFILE',
    create() {
      const volume = Volume.tmpfs()
      const limit = ({ process }: RemoteAgent, files: string) =>
        void run('prlimit', '--pid', String(process.pid), `--nofile=${files}`)
      const lowest = ({ process }: RemoteAgent) => {
        const open = new Set(readdirSync(`/proc/${process.pid}/fd`).map(Number))
        return Array.from({ length: open.size + 1 }, (_, fd) => fd).find((fd) => !open.has(fd)) ?? open.size
      }
      return {
        root: volume.logs,
        break: (agent) => limit(agent, `${lowest(agent)}:4096`),
        mend: (agent) => limit(agent, '4096:4096'),
      }
    },
  },
]
