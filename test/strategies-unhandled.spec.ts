import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const CHILD = new URL('fixtures/strict-child.ts', import.meta.url).pathname
const strategies: [name: string, config: object][] = [
  ['coalesced', {}],
  ['pipelined', {}],
  ['selective', { tools: ['read'] }],
]

for (const [name, config] of strategies) {
  test(`no rejection of a failing disk is left unhandled under ${name}, whoever consumes the requests`, async () => {
    const module = new URL(`../src/strategies/${name}.ts`, import.meta.url).href
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--unhandled-rejections=strict',
      CHILD,
      module,
      JSON.stringify(config),
    ])
    const result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, number>
    expect(result).toMatchObject({ late: 0, works: true })
    // The faults did happen, waiters did see them, and flushes after them succeeded.
    expect(result['rejected']).toBeGreaterThan(5)
    expect(result['seen']).toBeGreaterThan(0)
    expect(result['durable']).toBeGreaterThan(5)
  })
}

test('the child that these tests run does die of a rejection that nobody handles', async () => {
  const leaky = `export default { name: 'leaky', apply(ctx) { ctx.provide('checkpointStrategy', { name: 'leaky', decide() {
    Promise.reject(new Error('nobody waits'))
    return { kind: 'flush' }
  } }) } }`
  const module = `data:text/javascript,${encodeURIComponent(leaky)}`
  await expect(
    promisify(execFile)(process.execPath, ['--unhandled-rejections=strict', CHILD, module, '{}']),
  ).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('nobody waits') })
})
