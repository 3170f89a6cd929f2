/** What the SDK plugin takes from configuration and variables, what it refuses, and what it keeps out of the log. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LimitedLog } from '../src/log.ts'
import { Config } from '../src/node-sdk.ts'
import type { ResolvedConfig } from '../src/node-sdk/config.ts'
import { createDiagLogger, createRedactor, originOf } from '../src/node-sdk/diagnostics.ts'
import { planOf } from '../src/node-sdk/environment.ts'

beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_')) vi.stubEnv(name, undefined)
})
afterEach(() => void vi.unstubAllEnvs())

const configOf = (given: object = {}): ResolvedConfig => new Config(given)
function planUnder(env: Record<string, string>, given: object = {}) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  return planOf(configOf(given))
}

test('without configuration and variables both signals go out over http/protobuf', () => {
  expect(planUnder({})).toEqual({
    disabled: false,
    exporters: { traces: ['otlp'], metrics: ['otlp'] },
    protocols: { traces: 'http/protobuf', metrics: 'http/protobuf' },
    refusals: [],
  })
})

test.each([
  [{ OTEL_METRICS_EXPORTER: 'none' }, {}, ['otlp'], []],
  [{ OTEL_TRACES_EXPORTER: 'none' }, {}, [], ['otlp']],
  [{ OTEL_TRACES_EXPORTER: 'none' }, { signals: ['traces'] }, ['otlp'], []],
  [{ OTEL_TRACES_EXPORTER: ' console , otlp,console' }, {}, ['console', 'otlp'], ['otlp']],
  [{ OTEL_TRACES_EXPORTER: '' }, {}, ['otlp'], ['otlp']],
  [{}, { signals: ['metrics'] }, [], ['otlp']],
  [{}, { signals: [] }, [], []],
])('variables %j and configuration %j export traces to %j and metrics to %j', (env, given, traces, metrics) => {
  expect(planUnder(env, given).exporters).toEqual({ traces, metrics })
})

test('the protocol of a signal comes from configuration, its own variable, the common one, in that order', () => {
  const env = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json' }
  expect(planUnder(env).protocols).toEqual({ traces: 'grpc', metrics: 'http/json' })
  expect(planUnder(env, { protocol: 'http/protobuf' }).protocols).toEqual({
    traces: 'http/protobuf',
    metrics: 'http/protobuf',
  })
})

test.each([
  [{ OTEL_METRICS_EXPORTER: 'prometheus' }, 'mount dsh-checkpoint-otel/prometheus'],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'send otlp to a collector'],
  [{ OTEL_LOGS_EXPORTER: 'otlp' }, 'logs are not exported'],
  [{ OTEL_CONFIG_FILE: 'sdk.yaml' }, 'OTEL_CONFIG_FILE is not read'],
  [{ OTEL_NODE_RESOURCE_DETECTORS: 'env,process' }, 'OTEL_NODE_RESOURCE_DETECTORS=process is not used'],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'carrier-pigeon' }, 'not one of http/protobuf, http/json, grpc'],
])('%j is refused with a way out', (env, part) => {
  expect(planUnder(env).refusals.join('\n')).toContain(part)
})

test('what is refused for one signal does not touch the other', () => {
  expect(planUnder({ OTEL_METRICS_EXPORTER: 'prometheus' }).exporters).toEqual({ traces: ['otlp'], metrics: [] })
})

test.each([
  [{ OTEL_LOGS_EXPORTER: 'none' }],
  [{ OTEL_NODE_RESOURCE_DETECTORS: 'env,serviceinstance' }],
  [{ OTEL_METRICS_EXPORTER: 'otlp' }],
])('%j is not refused', (env) => {
  expect(planUnder(env).refusals).toEqual([])
})

test.each([
  ['true', true],
  ['TRUE', true],
  ['false', false],
  ['1', false],
])('OTEL_SDK_DISABLED=%s disables: %s', (value, disabled) => {
  expect(planUnder({ OTEL_SDK_DISABLED: value }).disabled).toBe(disabled)
})

test.each([
  [{ endpoint: 'localhost:4318' }, 'checkpoint-node-sdk: endpoint must be an http or https URL'],
  [{ signals: ['logs'] }, 'checkpoint-node-sdk: signals must be a list of traces and metrics, got ["logs"]'],
  [{ protocol: 'http' }, 'checkpoint-node-sdk: protocol must be one of http/protobuf, http/json, grpc, got "http"'],
  [
    { shutdownTimeoutMs: 0 },
    'checkpoint-node-sdk: shutdownTimeoutMs must be a number of milliseconds from 1 to 2147483647, got 0',
  ],
  [{ serviceName: ' ' }, 'checkpoint-node-sdk: serviceName must be a text that is not empty, got " "'],
])('configuration %j is refused by name and rule', (given, sentence) => {
  expect(messagesOf(given)).toEqual([sentence])
})

test.each([{ headers: { authorization: 'hunter2\nhunter2' } }, { endpoint: 'ftp://me:hunter2@host' }])(
  'a refused secret is not shown: %#',
  (given) => {
    expect(messagesOf(given).join()).toMatch(/must be an (object|http)/)
    expect(messagesOf(given).join()).not.toContain('hunter2')
  },
)

test('the defaults leave everything but the bound of the unload to the variables', () => {
  expect(configOf()).toEqual({ headers: {}, shutdownTimeoutMs: 3_000 })
})

test('no header value, credential or query reaches the log', () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-api-key=env%20secret,other=plainsecret')
  vi.stubEnv('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'https://user:passw0rd@host/v1/traces?token=querytoken')
  const config = configOf({
    headers: { authorization: 'Bearer hunter2hunter2' },
    endpoint: 'http://me:endpointpass@127.0.0.1:4318',
  })
  const lines: string[] = []
  const write = (line: string) => void lines.push(line)
  const logger = createDiagLogger(
    { info: write, debug: write },
    new LimitedLog({ warn: write }),
    createRedactor(config),
  )
  const all =
    'Bearer hunter2hunter2 hunter2hunter2 env secret env%20secret plainsecret passw0rd querytoken endpointpass'
  logger.error(all)
  logger.warn(new Error(all) as never)
  logger.info(all)
  logger.debug(all, { authorization: 'hunter2hunter2' })
  logger.verbose(JSON.stringify({ message: all, data: 'hunter2hunter2' }))
  expect(lines).toHaveLength(5)
  for (const secret of all.split(' ').filter((word) => word !== 'Bearer'))
    expect(lines.join('\n')).not.toContain(` ${secret}`)
  expect(originOf('https://user:passw0rd@host:1/v1/traces?token=q')).toBe('https://host:1')
})

test('export errors are one readable line a minute', () => {
  const lines: string[] = []
  const write = (line: string) => void lines.push(line)
  const logger = createDiagLogger({ info: write, debug: write }, new LimitedLog({ warn: write }), (text) => text)
  const error = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:4318\nmore'), { code: 'ECONNREFUSED' })
  for (let count = 0; count < 100; count += 1)
    logger.error(
      JSON.stringify({ stack: error.stack, message: error.message, name: 'Error', code: error.code, data: 'body' }),
    )
  expect(lines).toEqual(['OpenTelemetry: Error: connect ECONNREFUSED 127.0.0.1:4318: ECONNREFUSED'])
})

test('a logger that throws is contained', () => {
  const throws = () => {
    throw new Error('logger')
  }
  const logger = createDiagLogger({ info: throws, debug: throws }, new LimitedLog({ warn: throws }), (text) => text)
  for (const level of ['error', 'warn', 'info', 'debug', 'verbose'] as const)
    expect(() => logger[level]('x')).not.toThrow()
})

function messagesOf(given: object): string[] {
  const result = (Config as never as { '~standard': { validate(value: unknown): { issues?: { message: string }[] } } })[
    '~standard'
  ].validate(given)
  return result.issues?.map(({ message }) => message) ?? []
}
