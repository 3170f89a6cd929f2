/**
 * What a power cut leaves of the logs of a killed process, at the worst: bytes that no fsync covered are gone, wholly or from
 * some place on, and so is a file whose folder was not synced. SIGKILL alone proves nothing about fsync: the page cache survives it.
 */
import { rmSync, statSync, truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import { linesOf } from './side-file.ts'

interface Note {
  readonly path?: string
  readonly size?: number
  readonly link?: string
  readonly from?: string
  readonly folder?: string
}

/**
 * Take back what was never synced.
 * @param side - folder with the notes of storage-points.ts.
 * @param kept - share of the unsynced bytes that reached the platter after all, from 0 to 1.
 */
export function cutPower(side: string, kept: number): void {
  const sizes = new Map<string, number>()
  const links = new Map<string, boolean>()
  for (const { path, size = 0, link, from = '', folder } of linesOf(`${side}/synced`) as Note[]) {
    if (path !== undefined) sizes.set(path, size)
    if (link !== undefined) {
      links.set(link, links.get(link) ?? false)
      sizes.set(link, sizes.get(from) ?? 0)
    }
    for (const name of links.keys()) if (folder === dirname(name)) links.set(name, true)
  }
  for (const [path, durable] of links) {
    const actual = statSync(path, { throwIfNoEntry: false })?.size
    if (actual === undefined) continue
    const size = sizes.get(path) ?? 0
    if (!durable && kept < 1) rmSync(path)
    else if (actual > size) truncateSync(path, size + Math.floor((actual - size) * kept))
  }
}
