/** Output that nobody takes, and arguments that name no file: told in a sentence, for every command. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BIN, runCli, scratch } from './support/cli.ts'
import { requirement } from './support/require.ts'

const BEYOND_THE_LIMIT = 257 * 2 ** 20

describe.skipIf(!requirement('/bin/sh and /dev/full', process.platform === 'linux'))('output', () => {
  const shell = (line: string) =>
    spawnSync('/bin/bash', ['-c', `set -o pipefail; ${line}`], {
      env: { ...process.env, NODE: process.execPath, BIN, DIR: scratch() },
      encoding: 'utf8',
    })

  test('a reader that leaves early is no failure, on either stream', () => {
    for (const end of ['2>&1 | head -n 1', '2> >(head -n 1 >&2) >/dev/null'])
      expect(shell(`"$NODE" "$BIN" demo --json --turns 1 --dir "$DIR" ${end}`)).toMatchObject({ status: 0 })
  })

  test('that cannot be written is one sentence and exit code 1', () => {
    const { status, stderr } = shell('"$NODE" "$BIN" demo --turns 1 --dir "$DIR" > /dev/full')
    expect(stderr).toMatch(/^error: cannot write the output: ENOSPC[^\n]*\n$/)
    expect(status).toBe(1)
  })

  test('whose progress cannot be written is whole all the same', () => {
    const { status, stdout } = shell('"$NODE" "$BIN" demo --json --turns 1 --dir "$DIR" 2> /dev/full')
    expect(JSON.parse(stdout)).toMatchObject({ ok: true })
    expect(status).toBe(0)
  })
})

describe('an argument that is no regular file', () => {
  const pipe = () => {
    const path = join(scratch(), 'session.jsonl')
    execFileSync('/usr/bin/env', ['mkfifo', path])
    return path
  }
  const socket = async () => {
    const path = join(scratch(), 'socket')
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(path, resolve))
    onTestFinished(() => void server.close())
    return path
  }
  const large = () => {
    const path = join(scratch(), 'session.jsonl')
    writeFileSync(path, '')
    truncateSync(path, BEYOND_THE_LIMIT)
    return path
  }
  const CALLS: readonly (readonly [call: readonly string[], name: string])[] = [
    [['tune'], 'tune'],
    [['demo', '--resume'], '--resume'],
    [['doctor', '--config'], '--config'],
    [['bench', '--html'], '--html'],
  ]

  test.skipIf(!requirement('mkfifo', process.platform !== 'win32'))(
    'a pipe, a socket and a device are refused by name and at once',
    async () => {
      const files = [pipe(), await socket(), '/dev/zero']
      const runs = CALLS.flatMap(([call, name]) => files.map((file) => ({ args: [...call, file], name, file })))
      for (const { args, name, file } of runs) {
        const { code, stdout, stderr } = await runCli(args)
        expect(stderr.split('\n')[0]).toContain(`error: ${name}: ${file} is`)
        expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      }
    },
  )

  test.skipIf(!requirement('mkfifo', process.platform !== 'win32'))(
    'a pipe that a search of tune finds is left out and said',
    async () => {
      const file = pipe()
      const { code, stderr } = await runCli(['tune', join(file, '..')])
      expect(stderr).toContain(`${file}: is a pipe, not a regular file`)
      expect(code).toBe(2)
    },
  )

  test('a log beyond the limit is refused before it is read', async () => {
    const file = large()
    for (const call of [['tune'], ['demo', '--resume']]) {
      const { code, stderr } = await runCli([...call, file])
      expect(stderr).toContain(file)
      expect(stderr).toContain('is larger than 256 MiB')
      expect(code).toBe(2)
    }
  })

  test('an empty value is what a variable leaves that is not set, and is refused', async () => {
    for (const [args, name] of [
      [['bench', '--html='], '--html'],
      [['demo', '--dir='], '--dir'],
      [['demo', '--resume', ''], '--resume'],
      [['doctor', '--config', ''], '--config'],
      [['tune', ''], 'tune'],
    ] as const) {
      const { code, stderr } = await runCli(args)
      expect(stderr).toMatch(new RegExp(`^error: ${name}: .* is empty\n$`))
      expect(code).toBe(2)
    }
  })

  test('rows that are not there, or a folder, are a wrong call; rows that are garbage are a finding', async () => {
    const folder = scratch()
    writeFileSync(join(folder, 'package.json'), '{}')
    const garbage = join(folder, 'garbage.yml')
    writeFileSync(garbage, Buffer.from([0, 255, 123, 10, 9, 58, 200]))
    const run = (config: string) => runCli(['doctor', '--dir', folder, '--no-write', '--config', config])
    expect(await run(join(folder, 'absent.yml'))).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `error: --config: there is no file ${join(folder, 'absent.yml')}\n`,
    })
    expect(await run(folder)).toMatchObject({
      code: 2,
      stderr: `error: --config: ${folder} is a folder; name a file of rows\n`,
    })
    const { code, stdout } = await run(garbage)
    expect(stdout).toContain(garbage)
    expect(code).toBe(1)
  })
})

test('a report of bench that cannot be written is refused before anything is measured', async () => {
  const dir = scratch()
  mkdirSync(join(dir, 'folder'))
  writeFileSync(join(dir, 'file'), '')
  for (const html of ['folder', 'folder/', 'absent/', 'absent/report.html', 'file/report.html']) {
    const { code, stdout, stderr } = await runCli(['bench', '--html', join(dir, html)])
    expect(stderr).toMatch(/^error: --html: .* (is a folder; name a file|cannot be written \(E\w+\))\n$/)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  }
})
