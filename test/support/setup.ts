/** Patience for all tests: a machine under load is slow, not broken, and `vi.waitFor` gives up after a second. */
import { vi } from 'vitest'

const waitFor = vi.waitFor
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: 15_000, interval: 10, ...options })
