import { connect } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { CONTENT_TYPES, negotiate } from '../src/prometheus/negotiate.ts'
import * as prometheus from '../src/prometheus.ts'
import * as sc from '../src/semconv.ts'
import { ask, createFake, Samples } from './support/scrape.ts'

const PROMETHEUS_2 =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
const PROMETHEUS_2_OLD = 'application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
const PROMETHEUS_3 =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,' +
  'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1'
const PROMETHEUS_3_PROTOBUF =
  'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,' + PROMETHEUS_3

const MATRIX = [
  [undefined, 'text'],
  ['', 'text'],
  ['*/*', 'text'],
  ['text/plain', 'text'],
  ['text/*', 'text'],
  ['text/plain; version=0.0.4; charset=utf-8', 'text'],
  ['application/openmetrics-text', 'openmetrics'],
  ['Application/OpenMetrics-Text; Version="1.0.0"; charset=utf-8', 'openmetrics'],
  ['application/*', 'openmetrics'],
  [PROMETHEUS_2, 'openmetrics'],
  [PROMETHEUS_2_OLD, 'text'],
  [PROMETHEUS_3, 'openmetrics'],
  [PROMETHEUS_3_PROTOBUF, 'openmetrics'],
  ['text/plain;q=0.4, application/openmetrics-text;q=0.6', 'openmetrics'],
  ['text/plain;q=0.6, application/openmetrics-text;q=0.4', 'text'],
  ['text/plain, application/openmetrics-text', 'text'],
  ['application/openmetrics-text, text/plain', 'openmetrics'],
  ['*/*, application/openmetrics-text', 'openmetrics'],
  ['application/openmetrics-text;q=0, */*', 'text'],
  ['text/plain;q=0, */*', 'openmetrics'],
  ['application/openmetrics-text;version=2.0.0, */*;q=0.1', 'text'],
  ['application/openmetrics-text;q=nonsense, text/plain;q=0.1', 'text'],
  // Nothing that we have: the classic text is the answer that every scraper reads.
  ['application/json', 'text'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'text'],
  [';;;,/,=', 'text'],
] as const

test.each(MATRIX)('[D22] Accept: %s is answered with %s', (accept, format) => {
  expect(negotiate(accept)).toBe(format)
})

test('[D22] header and body agree for every scraper, in whatever order they come', async () => {
  const fake = await createFake()
  fake.announce({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), errorType: 'EIO' })
  const orders = [...MATRIX, ...MATRIX.toReversed()]
  for (const [accept, format] of orders) {
    const answer = await ask(fake.port, { headers: accept === undefined ? {} : { accept } })
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ 'content-type': CONTENT_TYPES[format], vary: 'Accept' })
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.body)))
    const { prometheus: family } = sc.INSTRUMENTS[sc.METRIC_REJECTIONS]
    expect(answer.body.endsWith('# EOF\n')).toBe(format === 'openmetrics')
    expect(answer.body.includes('# {')).toBe(format === 'openmetrics')
    expect(answer.body.includes(`# TYPE ${family} counter`)).toBe(format === 'text')
    expect(answer.body.includes(`# TYPE ${family.replace(/_total$/, '')} counter`)).toBe(format === 'openmetrics')
    expect(new Samples(answer.body).nonZero(sc.METRIC_REJECTIONS)).toEqual({ 'tool,EIO': 1 })
  }
})

test('[D22] HEAD says what GET would, without the body', async () => {
  const { port } = await createFake()
  const head = await ask(port, { method: 'HEAD' })
  expect(head.status).toBe(200)
  expect(head.headers['content-type']).toBe(CONTENT_TYPES.text)
  expect(Number(head.headers['content-length'])).toBeGreaterThan(1_000)
  expect(head.body).toBe('')
})

test('[D22] another path is 404, another method 405 with Allow, and a query changes nothing', async () => {
  const { port } = await createFake()
  for (const path of ['/', '/metrics/', '/metricsx', '/favicon.ico', '//metrics']) {
    expect((await ask(port, { path })).status).toBe(404)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    const answer = await ask(port, { method })
    expect(answer.status).toBe(405)
    expect(answer.headers['allow']).toBe('GET, HEAD')
  }
  expect((await ask(port, { path: '/metrics?name[]=up' })).status).toBe(200)
})

test('path and host come from the config', async () => {
  const { port } = await createFake({ path: '/internal/metrics', host: '::1' })
  expect((await ask(port, { host: '::1', path: '/internal/metrics' })).status).toBe(200)
  expect((await ask(port, { host: '::1' })).status).toBe(404)
  await expect(ask(port, { host: '127.0.0.1' })).rejects.toThrow('ECONNREFUSED')
})

test('with a token, the endpoint answers those who have it and nobody else', async () => {
  const token = 'correct-horse-battery'
  const fake = await createFake({ token })
  const ok = ['Bearer correct-horse-battery', 'bearer correct-horse-battery']
  const refused = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Basic ${token}`,
    `Basic ${Buffer.from(`user:${token}`).toString('base64')}`,
    token,
  ]
  for (const authorization of ok) expect((await ask(fake.port, { headers: { authorization } })).status).toBe(200)
  for (const authorization of refused) {
    const answer = await ask(fake.port, { headers: authorization === undefined ? {} : { authorization } })
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer /)
    expect(answer.body).toBe('Unauthorized\n')
  }
  expect((await ask(fake.port, { path: '/other', headers: {} })).status).toBe(401)
  expect(fake.logs.join()).not.toContain(token)
})

test('[D22] a collector that throws is a 500 without a word of it, said once in the log; the next scrape works', async () => {
  const fake = await createFake()
  const { state } = fake
  fake.state = () => {
    throw new Error('the ledger at /home/somebody is gone')
  }
  for (let index = 0; index < 5; index += 1) {
    const answer = await ask(fake.port)
    expect(answer).toMatchObject({ status: 500, body: 'Internal Server Error\n' })
    expect(answer.headers['content-type']).toMatch(/^text\/plain/)
  }
  expect(fake.logs.filter((line) => line.includes('a scrape failed: Error: the ledger'))).toHaveLength(1)
  fake.state = state
  expect((await ask(fake.port)).status).toBe(200)
})

test('garbage and oversized headers are refused, and the endpoint goes on', async () => {
  const { port } = await createFake()
  for (const bytes of [
    '\x16\x03\x01 hello\r\n\r\n',
    `GET /metrics HTTP/1.1\r\nhost: x\r\naccept: ${'a'.repeat(10_000)}\r\n\r\n`,
  ]) {
    const socket = connect(port, '127.0.0.1')
    socket.end(bytes)
    let answer = ''
    for await (const chunk of socket.setEncoding('utf8')) answer += chunk
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /)
  }
  expect((await ask(port)).status).toBe(200)
})

test('a client that leaves in the middle of a scrape harms nobody', async () => {
  const { port } = await createFake()
  for (let index = 0; index < 20; index += 1) {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n')
    socket.destroy()
  }
  expect((await ask(port)).status).toBe(200)
})

const REFUSED = [
  [{ host: '' }, 'host must be an IP address or a host name, got ""'],
  [{ host: '0.0.0.0' }, 'host must be a loopback address unless token is set or allowRemote is true, got "0.0.0.0"'],
  [{ host: '::' }, 'host must be a loopback address unless token is set or allowRemote is true, got "::"'],
  [{ host: '0' }, 'host must be a loopback address'],
  [{ host: '10.0.0.1' }, 'host must be a loopback address'],
  [{ host: '::ffff:10.0.0.1' }, 'host must be a loopback address'],
  [{ host: 'example.org' }, 'host must be a loopback address'],
  [{ host: '0.0.0.0', token: '' }, 'token must be a text of visible ASCII characters'],
  [{ port: 65_536 }, 'port must be a whole number from 0 to 65535, got 65536'],
  [{ port: 80.5 }, 'port must be'],
  [{ path: 'metrics' }, 'path must be'],
  [{ path: '/a?b' }, 'path must be'],
  [{ tokn: 'x' }, 'tokn is not a field'],
] as const

test.each(REFUSED)('%j is refused when it is loaded, with a sentence that names the field', (config, sentence) => {
  const { issues = [] } = prometheus.Config['~standard'].validate(config) as { issues?: { message: string }[] }
  expect(issues.map(({ message }) => message).join('\n')).toContain(`checkpoint-prometheus: ${sentence}`)
})

test.each([
  {},
  { host: '127.8.9.1' },
  { host: 'localhost' },
  { host: '::1' },
  { host: '::ffff:127.0.0.1' },
  { host: '0.0.0.0', token: 'x' },
  { host: '0.0.0.0', allowRemote: true },
  { port: 0 },
])('%j is accepted', (config) => {
  const { issues } = prometheus.Config['~standard'].validate(config) as { issues?: unknown }
  expect(issues).toBeUndefined()
})

test('zero config is 127.0.0.1:9464/metrics without a token', () => {
  const result = prometheus.Config['~standard'].validate(undefined)
  expect(result).toEqual({ value: { host: '127.0.0.1', port: 9464, path: '/metrics', allowRemote: false } })
})

test('no refusal shows the token', () => {
  const secrets = ['hush blank', 'hush\nnewline', 'schlüssel', 12345678, { deep: 'secret-thing' }, ['secret-thing']]
  for (const token of secrets) {
    for (const rest of [{}, { port: -1, host: '0.0.0.0' }, { unknown: 1 }]) {
      const { issues = [] } = prometheus.Config['~standard'].validate({ token, ...rest }) as {
        issues?: { message: string }[]
      }
      const text = issues.map(({ message }) => message).join('\n')
      expect(text).toContain('token must be')
      for (const secret of ['hush', 'schl', '12345678', 'secret-thing']) expect(text).not.toContain(secret)
    }
  }
})
