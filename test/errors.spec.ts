import { expect, test } from 'vitest'
import { errorTypeOf } from '../src/errors.ts'
import { ERROR_TYPES } from '../src/semconv.ts'
import { storageError } from './support/app.ts'

const hostile = new Error('hostile')
Object.defineProperty(hostile, 'code', {
  get() {
    throw new Error('getter')
  },
})
const cyclic = new Error('cyclic')
cyclic.cause = cyclic

const CASES: readonly [string, unknown, string][] = [
  ['a storage error', storageError('ENOSPC'), 'ENOSPC'],
  ['a wrapped storage error', new Error('flush failed', { cause: storageError('EROFS') }), 'EROFS'],
  ['an aggregate', new AggregateError([new Error('other'), storageError('EIO')]), 'EIO'],
  ['a code outside the set', Object.assign(new Error(), { code: 'E_/home/me/secret' }), '_OTHER'],
  ['no error at all', 'disk full', '_OTHER'],
  ['a hostile getter', hostile, '_OTHER'],
  ['a cycle', cyclic, '_OTHER'],
]
for (const [what, error, type] of CASES) {
  test(`${what} is ${type}`, () => {
    expect(errorTypeOf(error)).toBe(type)
    expect(ERROR_TYPES).toContain(type)
  })
}
