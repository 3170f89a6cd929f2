import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { noCounts } from './sweep/soak-observer.ts'
import { disagreements, fromScrape, isFlat } from './sweep/soak-verdict.ts'

const SOAK = fileURLToPath(new URL('./soak.ts', import.meta.url))

test(
  'agents under fire for a few seconds: the scrape counts what an observer counted, the heap stays flat, a dead exporter costs nothing',
  { timeout: 60_000 },
  async () => {
    const child = spawn(
      process.execPath,
      ['--expose-gc', '--unhandled-rejections=strict', SOAK, '--minutes', '0.05', '--agents', '20', '--seed', '4'],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    const [code] = await once(child, 'close')
    expect(output.split('\n').filter((line) => line.startsWith('VIOLATION'))).toEqual([])
    expect([code, output]).toEqual([0, expect.stringContaining('no violation')])
    expect(output).not.toContain('Warning')
  },
)

test('a number that differs on one side is a violation, and so is a gauge that does not come to rest', () => {
  expect(disagreements('the scrape', { ...noCounts(), flushes: 10 }, { ...noCounts(), flushes: 9 })).toEqual([
    'flushes: the observer counted 10, the scrape 9',
  ])
  const body = [
    'dsh_checkpoint_barrier_duration_seconds_count{boundary="tool",outcome="rejected",strategy="default"} 2',
    'dsh_checkpoint_barrier_duration_seconds_count{boundary="tool",outcome="timeout",strategy="default"} 1',
    'dsh_checkpoint_barrier_active{boundary="tool"} 1',
  ].join('\n')
  expect(fromScrape(body)).toEqual({
    counts: { ...noCounts(), rejectedTools: 3 },
    violations: ['dsh_checkpoint_barrier_active is 1 at the end'],
  })
})

test('a heap that grows all the time is a violation; one that warms up or wavers is not', () => {
  const heap = (size: (sample: number) => number) => isFlat(Array.from({ length: 40 }, (_, sample) => size(sample)))
  expect(heap((sample) => 40 + sample)).toMatch(/the heap grew from 55\.0 to 75\.0 MiB/)
  expect(heap((sample) => Math.min(50, 30 + 4 * sample) + (sample % 3))).toBeUndefined()
})
