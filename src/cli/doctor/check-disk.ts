/** Whether a write into the folder of the session logs is durable, as far as that can be known from here. */
import { isAbsolute, resolve } from 'node:path'
import { duration } from '../table.ts'
import { existingFolder, fileSystemOf, temporaryFolder, type FileSystem } from './disk.ts'
import type { Place } from './place.ts'
import { probeDisk } from './probe.ts'
import type { DiskReport, Finding } from './report.ts'
import { JsExpression, type Row } from './rows.ts'

/** Where the logs go. */
export interface Target {
  /** What is looked at. */
  readonly folder: string
  /** The root of the backend, where its row says it. It may not be there yet. */
  readonly root?: string
  /** Whether it is the backend's own folder; otherwise a stand-in that says little about it. */
  readonly isBackend: boolean
}

const LOW_SPACE_BYTES = 64 * 1024 * 1024
/** No device answers a sync in this time; what does is a cache. */
const SUSPICIOUS_MS = 0.03

/**
 * The folder of the backend, so far as its row says; the temporary folder where it does not.
 * @param backend - the mounted backend.
 */
export function targetOf(place: Place, backend: Row | undefined): Target {
  const root = (backend?.config as { root?: unknown; path?: unknown } | undefined)?.root
  const text = root instanceof JsExpression ? homePath(root.text, place.home) : root
  if (typeof text !== 'string' || text === '') return { folder: temporaryFolder(), isBackend: false }
  const path = isAbsolute(text) ? text : resolve(place.folder, text)
  return { folder: existingFolder(path), root: path, isBackend: true }
}

/** The one expression whose value is known here: a folder of the home. */
function homePath(expression: string, home: string | undefined): string | undefined {
  const path = /^\s*dshHomePath\(\s*'([\w./-]+)'\s*\)\s*$/.exec(expression)?.[1]
  return path === undefined || home === undefined ? undefined : resolve(home, path)
}

/** Look at it, and unless told not to, write there. */
export async function checkDisk(
  target: Target,
  write: boolean,
): Promise<{ readonly findings: Finding[]; readonly disk?: DiskReport }> {
  const fileSystem = fileSystemOf(target.folder)
  const findings = [...describe(target, fileSystem)]
  if (!write) return { findings }
  const probe = await probeDisk(target.folder)
  if ('error' in probe) {
    const message = `a write to ${target.folder} fails with ${probe.error}: every barrier would be rejected`
    return {
      findings: [
        ...findings,
        {
          id: 'disk-write',
          level: 'error',
          message,
          change: 'make the folder writable for the user that runs the agent, and free space on it',
        },
      ],
    }
  }
  const { medianMs, slowestMs, appends, linkError } = probe
  const took = `${appends} appends, each with its fsync, took ${duration(medianMs)} in the middle and ${duration(slowestMs)} at most`
  const open = 'whether the device keeps what it confirmed when power is lost cannot be seen from here'
  findings.push({ id: 'disk-write', level: 'ok', message: `${took}; ${open}` })
  if (fileSystem.kind === 'local' && medianMs < SUSPICIOUS_MS) {
    findings.push({
      id: 'disk-fast',
      level: 'note',
      message: `no device answers in ${duration(medianMs)}: a cache confirms these syncs`,
    })
  }
  if (linkError !== undefined) {
    const message = `hard links fail there with ${linkError}: the JSONL backend publishes each new session with one`
    findings.push({
      id: 'disk-link',
      level: target.isBackend ? 'error' : 'warning',
      message,
      change: 'move the root of the backend to a file system with hard links',
    })
  }
  return {
    findings,
    disk: {
      folder: target.root ?? target.folder,
      isBackend: target.isBackend,
      fileSystem: fileSystem.name,
      appends,
      medianMs,
      slowestMs,
    },
  }
}

function* describe({ folder, root = folder, isBackend }: Target, fileSystem: FileSystem): Generator<Finding> {
  if (!isBackend) {
    yield {
      id: 'disk-target',
      level: 'note',
      message: `the folder of the session logs is not known here: ${folder} is looked at in its place and says little about it`,
    }
  }
  const { kind, name, freeBytes, weakOption } = fileSystem
  const where = `${root} is on ${name}`
  const move = `move the ${isBackend ? 'root of the backend' : 'session logs'} to a local disk, in a container to a mounted volume`
  // The temporary folder is in memory on many machines whose logs are not.
  const level = isBackend ? 'warning' : 'note'
  switch (kind) {
    case 'local':
      yield { id: 'disk', level: 'ok', message: `${where}, a file system whose fsync asks the device` }
      break
    case 'memory':
      yield {
        id: 'disk',
        level,
        message: `${where}: it is memory, logs survive the process and not the machine`,
        change: move,
      }
      break
    case 'overlay':
      yield {
        id: 'disk',
        level,
        message: `${where}: the writable layer of a container, logs are gone with the container`,
        change: move,
      }
      break
    case 'network':
      yield {
        id: 'disk',
        level,
        message: `${where}: a network file system, what an fsync means is up to its server and its mount options`,
        change: move,
      }
      break
    case 'shared':
      yield {
        id: 'disk',
        level,
        message: `${where}: shared with a host or served by a program, what an fsync means is up to that side`,
        change: move,
      }
      break
    case 'unknown':
      yield {
        id: 'disk',
        level: 'note',
        message: `${where}, which this doctor does not know: what an fsync means there is not known here`,
      }
      break
  }
  if (weakOption !== undefined) {
    yield {
      id: 'disk-barrier',
      level: 'warning',
      message: `it is mounted with ${weakOption}: a sync does not empty the device's cache`,
      change: `mount it without ${weakOption}`,
    }
  }
  if (freeBytes < LOW_SPACE_BYTES) {
    yield {
      id: 'disk-space',
      level: 'warning',
      message: `${Math.floor(freeBytes / 1024 / 1024)} MiB are free there: a full disk rejects every barrier`,
      change: 'free space',
    }
  }
  if (/eatmydata/.test(process.env['LD_PRELOAD'] ?? '')) {
    yield {
      id: 'disk-preload',
      level: 'warning',
      message: 'libeatmydata is preloaded here: no sync reaches the device',
      change: 'start the agent without it',
    }
  }
}
