/** What `bench` computes and judges, without a disk. */
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { describeFileSystem, type FileSystem } from '../src/cli/bench/filesystem.ts'
import { judge } from '../src/cli/bench/fsync.ts'
import { findingOf } from '../src/cli/bench/report.ts'
import { filler, pausedMs } from '../src/cli/bench/script.ts'
import { estimate, isSteady, median, ratios } from '../src/cli/bench/statistics.ts'
import { scriptOf, WORKLOADS } from '../src/cli/bench/workloads.ts'
import { requirement } from './support/require.ts'

describe('statistics', () => {
  const samples = fc.array(fc.double({ min: 0.001, max: 1_000, noNaN: true }), { minLength: 1, maxLength: 12 })

  test('an interval holds its median, lies within the samples, and is the same the next time', () => {
    fc.assert(
      fc.property(samples, (list) => {
        const result = estimate(list)
        expect(result.median).toBe(median(list))
        expect(result.low).toBeLessThanOrEqual(result.median)
        expect(result.high).toBeGreaterThanOrEqual(result.median)
        expect(result.low).toBeGreaterThanOrEqual(Math.min(...list))
        expect(result.high).toBeLessThanOrEqual(Math.max(...list))
        expect(estimate(list)).toEqual(result)
      }),
      { numRuns: 40 },
    )
  })

  test('a slow round weighs on both sides of a ratio', () => {
    expect(ratios([2, 20, 4], [4, 40, 8])).toEqual([0.5, 0.5, 0.5])
  })

  test('a reference against itself is steady near 1 and within a quarter, and not otherwise', () => {
    expect(isSteady({ low: 0.9, high: 1.1 })).toBe(true)
    expect(isSteady({ low: 1.02, high: 1.1 })).toBe(true)
    expect(isSteady({ low: 1.06, high: 1.1 })).toBe(false)
    expect(isSteady({ low: 0.7, high: 1.1 })).toBe(false)
    expect(isSteady({ low: 0.9, high: 1.3 })).toBe(false)
  })

  test('only an interval that leaves 1 out is a finding', () => {
    expect(findingOf({ median: 0.5, low: 0.4, high: 0.99 })).toBe('less')
    expect(findingOf({ median: 0.5, low: 0.4, high: 1.01 })).toBe('unsure')
    expect(findingOf({ median: 1.5, low: 1.01, high: 2 })).toBe('more')
  })
})

describe('whether fsync reaches the device', () => {
  const disk: FileSystem = {
    type: 'ext4',
    mountPoint: '/',
    source: '/dev/sda1',
    options: ['rw'],
    device: { name: 'sda', kind: 'physical' },
  }

  test.each([
    ['memory has no device', { ...disk, type: 'tmpfs', device: undefined }, 0.001, 'no', 'memory'],
    ['compressed memory is memory', { ...disk, device: { name: 'zram0', kind: 'memory' } }, 0.5, 'no', 'memory'],
    [
      'an overlay that leaves syncs out',
      { ...disk, type: 'overlay', options: ['rw', 'volatile'] },
      0.5,
      'no',
      'volatile',
    ],
    ['a mount without barriers', { ...disk, options: ['rw', 'nobarrier'] }, 0.5, 'no', 'without barriers'],
    ['a share of another machine', { ...disk, type: 'nfs4' }, 0.5, 'unknown', 'another machine'],
    ['a system that tells nothing', { type: 'unknown', options: [] }, 0.5, 'unknown', 'not known'],
    ['faster than a drive can be', disk, 0.005, 'implausible', '5 µs'],
    ['as fast as a drive may be', disk, 0.5, 'plausible', 'as a device may need'],
    [
      'a virtual disk, with a reservation',
      { ...disk, device: { name: 'vda', kind: 'virtual' } },
      0.5,
      'plausible',
      'its host',
    ],
    [
      'an overlay, with a reservation',
      { ...disk, type: 'overlay', device: undefined },
      0.5,
      'plausible',
      'below the overlay',
    ],
  ] as const)('%s', (_, fileSystem, syncMs, verdict, words) => {
    const judged = judge(fileSystem as FileSystem, syncMs)
    expect(judged.verdict).toBe(verdict)
    expect(judged.because).toContain(words)
  })

  test.skipIf(!requirement('/dev/shm', existsSync('/dev/shm')))('a folder in memory is recognised as such', () => {
    expect(describeFileSystem('/dev/shm')).toMatchObject({ type: 'tmpfs', mountPoint: '/dev/shm' })
    expect(describeFileSystem('/dev/shm').device).toBeUndefined()
  })
})

describe('scripts', () => {
  test('every workload ends with an answer without calls', () => {
    for (const workload of WORKLOADS) {
      const { steps } = scriptOf(workload, 3)
      expect(steps.map(({ calls }) => calls.length)).toEqual([workload.calls, workload.calls, workload.calls, 0])
    }
  })

  test('time in parallel calls counts once, in calls one after the other each', () => {
    const [, three, parallel] = WORKLOADS
    const withTime = (workload: (typeof WORKLOADS)[number] | undefined) =>
      pausedMs(scriptOf({ ...workload!, toolMs: 10 }, 2))
    expect(withTime(parallel)).toBe(20)
    expect(withTime(three)).toBe(60)
  })

  test('filler has the size asked for', () => {
    for (const bytes of [0, 1, 1_000, 100_000]) expect(filler(bytes)).toHaveLength(bytes)
  })
})
