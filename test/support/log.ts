/** Session logs as an outsider reads them: from the file. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Events of the only log below a root, read from the file as an outsider would. */
export function readLog(root: string): { type: string; seq: number; data: Record<string, unknown> }[] {
  const [file] = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'))
  if (file === undefined) return []
  const lines = readFileSync(join(root, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  return lines.slice(1).map((line) => JSON.parse(line))
}

/** Whether a tool call is on disk. */
export function isOnDisk(root: string, callId: string): boolean {
  return readLog(root).some((event) => event.type === 'tool/call' && event.data['callId'] === callId)
}
