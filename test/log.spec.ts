import { Context } from '@deepseek-ai/cordis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLogger, LimitedLog } from '../src/log.ts'

function catchWarnings() {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emit.mockRestore())
  return () => emit.mock.calls.map(([message]) => String(message))
}

test('where nothing takes log lines off the host, warnings and errors become warnings of the process', () => {
  const warnings = catchWarnings()
  const logger = createLogger(new Context())
  logger.warn('a')
  logger.error('b')
  logger.info('c')
  expect(warnings()).toEqual(['a', 'b'])
})

test('an exporter that takes warnings is enough, and one of the default level takes errors alone', async () => {
  const warnings = catchWarnings()
  const ctx = new Context()
  const lines: string[] = []
  const logger = createLogger(ctx)
  const quiet = ctx.logger.exporter({ export: ({ args }) => void lines.push(String(args[0])) })
  logger.warn('a')
  logger.error('b')
  expect([warnings(), lines]).toEqual([['a'], ['b']])
  await quiet()
  ctx.logger.exporter({ levels: { default: 3 }, export: ({ args }) => void lines.push(String(args[0])) })
  logger.warn('c')
  expect([warnings(), lines]).toEqual([['a'], ['b', 'c']])
})

test('a line of one kind is written once a minute, with the number of those held back; another kind is not held', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const lines: string[] = []
  const log = new LimitedLog({ warn: (line) => void lines.push(line) })
  for (let index = 0; index < 5; index += 1) log.warn('disk', () => `disk ${index}`)
  log.warn('other', () => 'other')
  vi.advanceTimersByTime(60_001)
  log.warn('disk', () => 'disk again')
  expect(lines).toEqual(['disk 0', 'other', 'disk again (4 more like this since the last line)'])
})

test('a logger that throws, or a message that does, is contained', () => {
  const log = new LimitedLog({
    warn() {
      throw new Error('logger')
    },
  })
  expect(() => log.warn('a', () => 'line')).not.toThrow()
  const lines: string[] = []
  const other = new LimitedLog({ warn: (line) => void lines.push(line) })
  expect(() =>
    other.warn('b', () => {
      throw new Error('message')
    }),
  ).not.toThrow()
})
