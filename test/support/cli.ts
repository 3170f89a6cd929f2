/** The executable, run as its users run it, and session logs written by hand for it. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { zstdCompressSync } from 'node:zlib'
import { onTestFinished } from 'vitest'

/** The executable in the sources. */
export const BIN = fileURLToPath(new URL('../../src/cli/bin.ts', import.meta.url))

/** What a command left behind. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Run the executable to its end. */
export async function runCli(
  args: readonly string[],
  { bin = BIN, env = {} }: { bin?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const { promise, resolve } = Promise.withResolvers<number | null>()
  child.on('close', resolve)
  return { code: await promise, stdout, stderr }
}

/** A folder that goes with the test. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'dsh-checkpoint-cli-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** One event without its `seq`. */
export type LogLine = readonly [type: string, data: Record<string, unknown>, extra?: Record<string, unknown>]

/** A turn in which the model asks for calls, up to their records; what follows is the test's. */
export function turnWith(asked: readonly string[], recorded: readonly string[] = asked, turn = 1): LogLine[] {
  const position = { turn, step: 1 }
  const content = asked.map((id) => ({ type: 'tool-call', id, name: 'bash', arguments: '{}' }))
  const source = { kind: 'model', provider: 'p', model: 'm' }
  return [
    ['turn/start', { turn }],
    ['step/start', position],
    [
      'user/message',
      { id: `u${turn}`, role: 'user', content: [{ type: 'text', text: 'go' }], source: { kind: 'user' } },
      APPEND,
    ],
    [
      'assistant/message',
      { ...position, message: { id: `a${turn}`, role: 'assistant', content, source } },
      { ...APPEND, sourceEventSeqs: [] },
    ],
    ...recorded.map((callId): LogLine => ['tool/call', { ...position, callId, name: 'bash', arguments: '{}' }]),
  ]
}

/** A result of a call, from its tool or, with a code, from recovery. */
export function resultOf(callId: string, turn = 1, code?: string): LogLine {
  const content = [
    { type: 'tool-result', toolCallId: callId, isError: code !== undefined, content: [{ type: 'text', text: 'ok' }] },
  ]
  const message = { id: `r-${callId}`, role: 'user', source: { kind: 'tool', callId }, content }
  const error = code === undefined ? {} : { error: { name: 'Error', code } }
  return ['tool/result', { turn, step: 1, message, ...error }, APPEND]
}

/** The end of a step and its turn. */
export function closed(turn = 1, kind = 'completed'): LogLine[] {
  return [
    ['step/end', { turn, step: 1 }],
    ['turn/end', { turn, reason: { kind } }],
  ]
}

const APPEND = { surfaceOp: 'append' }
const HEADER = {
  type: 'session',
  version: 0,
  id: 'brought-along',
  createdAt: 1_700_000_000_000,
  cwd: '/some/project',
  delegationDepth: 0,
}

/** Write a log as the backend lays it out: raw lines, or one zstd frame for the header and one for the rest. */
export function writeLog(
  lines: readonly LogLine[],
  { header = {}, zstd = false }: { header?: object; zstd?: boolean } = {},
): string {
  const first = `${JSON.stringify({ ...HEADER, ...header })}\n`
  const rest = lines
    .map(
      ([type, data, extra], seq) => `${JSON.stringify({ type, seq, time: 1_700_000_000_000 + seq, data, ...extra })}\n`,
    )
    .join('')
  const file = join(scratch(), zstd ? 'session.jsonl.zstd' : 'session.jsonl')
  const bytes = zstd ? Buffer.concat([first, rest].map((text) => zstdCompressSync(text))) : first + rest
  writeFileSync(file, bytes)
  return file
}
