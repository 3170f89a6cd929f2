/** Does a sync reach the device? Time it, and hold it against what the file system is. */
import { closeSync, fdatasyncSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { quantile } from 'simple-statistics'
import { describeFileSystem, type FileSystem } from './filesystem.ts'

/** Latencies in milliseconds. */
interface Latency {
  readonly median: number
  readonly p95: number
}

/** What is known about syncs in a folder. */
export interface SyncReport {
  readonly fileSystem: FileSystem
  /** Append of one block without a sync. */
  readonly write: Latency
  /** `fdatasync` after an append. */
  readonly fdatasync: Latency
  /** `fsync` after an append: what the JSONL backend waits for. */
  readonly fsync: Latency
  /** `no`: nothing can survive a power cut. `implausible`: faster than a device can be. `plausible`: nothing speaks against it. `unknown`: another machine decides. */
  readonly verdict: 'no' | 'implausible' | 'plausible' | 'unknown'
  /** The verdict in a sentence, with what it rests on. */
  readonly because: string
}

const SAMPLES = 60
const BLOCK = Buffer.alloc(4_096, 'checkpoint ')
/** No drive completes a write and a cache flush faster, save one whose cache outlives a power cut. */
const FASTEST_FLUSH_MS = 0.02

/** Measure and judge. */
export function probeSync(folder: string): SyncReport {
  const path = join(folder, 'sync-probe')
  const file = openSync(path, 'a')
  try {
    const write = time(() => writeSync(file, BLOCK))
    const fdatasync = time(
      () => fdatasyncSync(file),
      () => writeSync(file, BLOCK),
    )
    const fsync = time(
      () => fsyncSync(file),
      () => writeSync(file, BLOCK),
    )
    const fileSystem = describeFileSystem(folder)
    return { fileSystem, write, fdatasync, fsync, ...judge(fileSystem, fsync.median) }
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
}

function time(act: () => unknown, before: () => unknown = () => {}): Latency {
  const samples = Array.from({ length: SAMPLES }, () => {
    before()
    const start = performance.now()
    act()
    return performance.now() - start
  })
  return { median: quantile(samples, 0.5), p95: quantile(samples, 0.95) }
}

const IN_MEMORY = new Set(['tmpfs', 'ramfs', 'devtmpfs', 'rootfs'])
const ELSEWHERE = /^(nfs|cifs|smb|9p|virtiofs|fuse|ceph|glusterfs|lustre|afs|vboxsf|prl_fs|drvfs)/

/**
 * Judge a sync by the file system it was made on and the time it took.
 * @param syncMs - median of `fsync`.
 */
export function judge(fileSystem: FileSystem, syncMs: number): Pick<SyncReport, 'verdict' | 'because'> {
  const { type, options, device } = fileSystem
  const took = `fsync took ${(syncMs * 1_000).toFixed(0)} µs`
  if (IN_MEMORY.has(type))
    return { verdict: 'no', because: `${type} lives in memory: nothing outlives the machine, a sync does nothing` }
  if (device?.kind === 'memory')
    return { verdict: 'no', because: `${device.name} is memory: nothing outlives the machine` }
  if (type === 'overlay' && options.includes('volatile')) {
    return { verdict: 'no', because: 'this overlay is mounted volatile: it leaves out every sync' }
  }
  if (options.includes('nobarrier') || options.includes('barrier=0')) {
    return { verdict: 'no', because: `${type} is mounted without barriers: syncs do not flush the drive's cache` }
  }
  if (ELSEWHERE.test(type))
    return {
      verdict: 'unknown',
      because: `${type} belongs to another machine or process, which decides what a sync does; ${took}`,
    }
  if (type === 'unknown') return { verdict: 'unknown', because: `the file system is not known here; ${took}` }
  if (syncMs < FASTEST_FLUSH_MS) {
    return {
      verdict: 'implausible',
      because: `${took}: no drive writes and flushes within ${FASTEST_FLUSH_MS * 1_000} µs, unless its cache outlives a power cut`,
    }
  }
  return { verdict: 'plausible', because: `${took}, as a device may need${caveat(fileSystem)}` }
}

function caveat({ type, device }: FileSystem): string {
  if (type === 'overlay') return '; the layer below the overlay is not visible here, and may be memory'
  if (device === undefined) return '; the device below is not visible here'
  if (device.kind === 'virtual')
    return `; ${device.name} is a virtual disk, and whether its host passes flushes on cannot be seen from inside`
  if (device.kind === 'loop') return `; ${device.name} is a file on another file system, which is not judged here`
  return '; a drive that acknowledges flushes it has not made cannot be told from one that makes them'
}
