import { expect, test } from 'vitest'
import * as policy from '../src/index.ts'
import * as inspector from '../src/inspector.ts'
import * as prometheus from '../src/prometheus.ts'
import { Config } from '../src/index.ts'
import { DURATION_BUCKETS_SECONDS } from '../src/semconv.ts'
import { createApp } from './support/app.ts'

const MISTAKES: readonly [unknown, string][] = [
  [{ timeoutMs: 0 }, 'dsh-checkpoint-otel: timeoutMs must be a number of milliseconds from 1 to 2147483647, got 0'],
  [
    { timeoutMs: 'soon' },
    'dsh-checkpoint-otel: timeoutMs must be a number of milliseconds from 1 to 2147483647, got "soon"',
  ],
  [{ timeoutMs: 2 ** 31 }, 'timeoutMs must be'],
  [{ timeoutMs: Number.NaN }, 'timeoutMs must be'],
  [{ turnBoundary: 'yes' }, 'dsh-checkpoint-otel: turnBoundary must be true or false, got "yes"'],
  [{ allowUnguarded: 1 }, 'allowUnguarded must be true or false, got 1'],
  [{ requireConfirmed: [] }, 'requireConfirmed must be true or false, got []'],
  [{ overdueMs: -1 }, 'overdueMs must be a number of milliseconds'],
  [
    { durationBucketsSeconds: [] },
    'durationBucketsSeconds must be a list of 1 to 64 positive numbers in ascending order, got []',
  ],
  [{ durationBucketsSeconds: [1, 1] }, 'in ascending order, got [1,1]'],
  [{ durationBucketsSeconds: [0, 1] }, 'positive numbers'],
  [{ durationBucketsSeconds: ['a'] }, 'positive numbers'],
  [{ timeoutMS: 5 }, 'dsh-checkpoint-otel: timeoutMS is not a field; the fields are timeoutMs, turnBoundary'],
  ['fast', 'dsh-checkpoint-otel: config must be an object, got "fast"'],
  [[], 'config must be an object, got []'],
]
for (const [config, message] of MISTAKES) {
  test(`${JSON.stringify(config)} is refused at load`, async () => {
    await expect(createApp({ plugins: [[policy, config]] })).rejects.toThrow(message)
  })
}

test('who calls apply directly is held to the same rules', async () => {
  const app = await createApp({ plugins: [] })
  expect(() => policy.apply(app.ctx, { timeoutMs: 0 })).toThrow('dsh-checkpoint-otel: timeoutMs must be')
  expect(() => prometheus.apply(app.ctx, { host: '0.0.0.0' })).toThrow('host must be a loopback address')
  expect(() => inspector.apply(app.ctx, { host: '0.0.0.0' })).toThrow('host must be a loopback address')
})

test('nothing, null and an empty object give the defaults', () => {
  for (const config of [undefined, null, {}]) {
    expect(Config['~standard'].validate(config)).toEqual({
      value: {
        turnBoundary: true,
        allowUnguarded: false,
        requireConfirmed: false,
        overdueMs: 5_000,
        durationBucketsSeconds: DURATION_BUCKETS_SECONDS,
      },
    })
  }
})

test('a refused config mounts nothing, and a corrected one does', async () => {
  const app = await createApp({ plugins: [] })
  await expect(app.mount(policy, { timeoutMs: 0 })).rejects.toThrow()
  expect(app.ctx.get('checkpoints')).toBeUndefined()
  await app.mount(policy, { timeoutMs: 1_000 })
  expect(app.ctx.get('checkpoints')).toBeDefined()
})
