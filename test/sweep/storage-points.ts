/**
 * Preloaded (`node --import`): points before, inside and after every write, fsync, link and truncation of a session log.
 * It wraps `fs/promises` below the backend, which knows nothing of it, and notes what an fsync has made durable.
 */
import { fstatSync, mkdirSync, openSync, writeSync } from 'node:fs'
import fs, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plan } from './plan.ts'
import { die, meets, reach } from './points.ts'

interface Opened {
  readonly path: string
  /** `append`, `create`, `repair` or `folder`. */
  readonly kind: string
}

const KIND_OF: Readonly<Record<string, string>> = { a: 'append', wx: 'create', 'r+': 'repair', r: 'folder' }
const { root = '', side = '', lyingSync = false, slowSyncMs } = JSON.parse(process.argv[2] ?? '{}') as Partial<Plan>
const opened = new WeakMap<object, Opened>()
if (side !== '') mkdirSync(side, { recursive: true })
const synced = side === '' ? -1 : openSync(`${side}/synced`, 'a')
const note = (line: object) => void writeSync(synced, `${JSON.stringify(line)}\n`)

const original = { ...fs }
const probe = await fs.open('/dev/null')
const handles = Object.getPrototypeOf(probe) as FileHandle
await probe.close()
// oxlint-disable-next-line typescript/unbound-method -- each is called with the handle it is taken from
const { writeFile, sync, truncate, write } = handles

fs.open = async (path, flags, mode) => {
  const handle = await original.open(path, flags, mode)
  const kind = KIND_OF[String(flags)]
  if (kind !== undefined && String(path).startsWith(root)) opened.set(handle, { path: String(path), kind })
  return handle
}
fs.link = async (from, to) => {
  reach('create:before-link')
  await original.link(from, to)
  note({ link: String(to), from: String(from) })
  reach('create:after-link')
}
fs.truncate = async (path, length) => {
  reach('repair:before-truncate')
  await original.truncate(path, length)
  reach('repair:after-truncate')
}
syncBuiltinESMExports()

handles.writeFile = async function (this: FileHandle, data, options) {
  const file = opened.get(this)
  if (file === undefined) return writeFile.call(this, data, options)
  reach(`${file.kind}:before-write`)
  if (meets(`${file.kind}:inside-write`)) {
    const bytes = Buffer.from(data as string)
    await (write as (buffer: Buffer, offset: number, length: number) => Promise<unknown>).call(
      this,
      bytes,
      0,
      Math.ceil(bytes.length / 2),
    )
    die(`${file.kind}:inside-write`)
  }
  await writeFile.call(this, data, options)
  reach(`${file.kind}:after-write`)
}
handles.sync = async function (this: FileHandle) {
  const file = opened.get(this)
  if (file === undefined) return sync.call(this)
  reach(`${file.kind}:before-sync`)
  if (slowSyncMs !== undefined) await sleep(Math.random() * slowSyncMs)
  if (!lyingSync) await sync.call(this)
  if (!lyingSync || file.kind !== 'append')
    note(file.kind === 'folder' ? { folder: file.path } : { path: file.path, size: fstatSync(this.fd).size })
  reach(`${file.kind}:after-sync`)
}
handles.truncate = async function (this: FileHandle, length) {
  const file = opened.get(this)
  if (file !== undefined) reach(`${file.kind}:before-rollback`)
  await truncate.call(this, length)
}
