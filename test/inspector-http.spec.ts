import { expect, test } from 'vitest'
import * as inspector from '../src/inspector.ts'
import { createHostCheck } from '../src/inspector/hosts.ts'
import { createFake, openStream } from './support/inspector.ts'
import { ask } from './support/scrape.ts'

test('the page, its files, the state and the stream are there, each with its type', async () => {
  const { port } = await createFake()
  const page = await ask(port, { path: '/' })
  expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
  const files = [...page.body.matchAll(/(?:src|href)="(page\/[^"]+)"/g)].map(([, file = '']) => file)
  const scripts = new Set(files)
  for (const file of scripts) {
    const { status, headers, body } = await ask(port, { path: `/${file}` })
    expect([file, status]).toEqual([file, 200])
    const type = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml' }[
      file.split('.').at(-1) ?? ''
    ]
    expect(headers['content-type']).toBe(type)
    for (const [, imported = ''] of body.matchAll(/from '\.\/(\w+\.js)'/g)) scripts.add(`page/${imported}`)
  }
  expect(scripts.size).toBeGreaterThan(8)
  expect((await ask(port, { path: '/api/state' })).headers['content-type']).toBe('application/json')
  expect((await openStream(port)).response.headers['content-type']).toBe('text/event-stream; charset=utf-8')
})

test('nothing on the page comes from elsewhere or stands inline, and the browser is told to refuse what would', async () => {
  const { port } = await createFake()
  const { body, headers } = await ask(port, { path: '/' })
  expect(body).not.toMatch(/\b(?:src|href)="(?:https?:)?\/\//)
  expect(body).not.toMatch(/\son\w+=|<style|\sstyle=|javascript:/)
  expect(body.match(/<script[^>]*>/g)).toEqual(['<script type="module" src="page/main.js">'])
  const policy = String(headers['content-security-policy'])
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ])
    expect(policy).toContain(rule)
  expect(policy).not.toContain('unsafe')
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  })
})

test('HEAD says what GET would, another path is 404 and another method 405', async () => {
  const { port } = await createFake()
  for (const path of ['/', '/api/state', '/page/main.js', '/api/events']) {
    const head = await ask(port, { path, method: 'HEAD' })
    expect([path, head.status, head.body]).toEqual([path, 200, ''])
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await ask(port, { path, method })
      expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD'])
    }
  }
  for (const path of [
    '/x',
    '//',
    '/page/',
    '/page/../config.ts',
    '/page/%2e%2e/config.ts',
    '/page/tsconfig.json',
    '/api',
    '/__proto__',
  ]) {
    expect([path, (await ask(port, { path })).status]).toEqual([path, 404])
  }
})

test('a host name that somebody else may have pointed at this machine is refused, on every path', async () => {
  const { port } = await createFake({ hosts: ['box.example.org'] })
  const ours = [
    '127.0.0.1',
    `127.0.0.1:${port}`,
    'localhost:9465',
    'LOCALHOST',
    '[::1]:80',
    '127.8.9.1',
    'box.example.org',
    'Box.Example.org:443',
  ]
  const others = [
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'evil.example:127',
    '192.168.0.7',
    '[2001:db8::1]',
    'localhost@evil.example',
    'a b',
  ]
  for (const path of ['/', '/api/state', '/page/main.js']) {
    for (const host of ours) expect([host, (await ask(port, { path, headers: { host } })).status]).toEqual([host, 200])
    for (const host of others)
      expect([host, (await ask(port, { path, headers: { host } })).status]).toEqual([host, 403])
  }
  expect((await ask(port, { path: '/api/events', headers: { host: 'evil.example' } })).status).toBe(403)
  expect((await ask(port, { path: '/', headers: { host: 'evil.example' } })).body).toContain('config field hosts')
})

test('beyond loopback any address may be asked for, but no unknown name', () => {
  const isOurs = createHostCheck('0.0.0.0', ['box'])
  for (const host of ['192.168.0.7:9465', '[2001:db8::1]', '127.0.0.1', 'box', 'localhost'])
    expect([host, isOurs(host)]).toEqual([host, true])
  for (const host of ['evil.example', '192.168.0.7.evil.example', '', undefined])
    expect([host, isOurs(host)]).toEqual([host, false])
})

test('a page elsewhere can neither read the state nor take a place on the stream', async () => {
  const { port } = await createFake()
  for (const site of ['cross-site', 'same-site']) {
    for (const path of ['/api/state', '/api/events']) {
      expect((await ask(port, { path, headers: { 'sec-fetch-site': site } })).status).toBe(403)
    }
    // A link to the page is fine.
    expect((await ask(port, { path: '/', headers: { 'sec-fetch-site': site } })).status).toBe(200)
  }
  for (const site of ['same-origin', 'none']) {
    const { status, headers } = await ask(port, { path: '/api/state', headers: { 'sec-fetch-site': site } })
    expect(status).toBe(200)
    expect(headers['access-control-allow-origin']).toBeUndefined()
    expect(headers['cross-origin-resource-policy']).toBe('same-origin')
  }
})

test('with a token, scripts send it as a bearer token and a browser as a password; nobody else sees a byte', async () => {
  const token = 'correct-horse'
  const fake = await createFake({ token })
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  for (const authorization of [`Bearer ${token}`, basic(`anybody:${token}`), basic(`:${token}`)]) {
    expect((await ask(fake.port, { path: '/api/state', headers: { authorization } })).status).toBe(200)
  }
  for (const path of ['/', '/api/state', '/api/events', '/page/main.js', '/x']) {
    for (const authorization of [
      undefined,
      'Bearer wrong',
      basic('anybody:wrong'),
      basic(`${token}:`),
      `Basic ${token}`,
      token,
    ]) {
      const answer = await ask(fake.port, { path, headers: authorization === undefined ? {} : { authorization } })
      expect(answer).toMatchObject({ status: 401, body: 'Unauthorized\n' })
      expect(answer.headers['www-authenticate']).toMatch(/^Basic /)
    }
  }
  expect(fake.logs.join()).not.toContain(token)
})

test('a policy that throws is a 500 without a word of it, said once in the log; the next request works', async () => {
  const fake = await createFake()
  const { state } = fake
  fake.state = () => {
    throw new Error('the ledger at /home/somebody is gone')
  }
  for (const path of ['/api/state', '/api/events']) {
    expect(await ask(fake.port, { path })).toMatchObject({ status: 500, body: 'Internal Server Error\n' })
  }
  expect(fake.logs.filter((line) => line.includes('a request failed: Error: the ledger'))).toHaveLength(1)
  fake.state = state
  expect((await ask(fake.port, { path: '/api/state' })).status).toBe(200)
})

test.each([
  [{ host: '0.0.0.0' }, 'host must be a loopback address unless token is set or allowRemote is true, got "0.0.0.0"'],
  [{ host: '' }, 'host must be an IP address or a host name, got ""'],
  [{ port: 65_536 }, 'port must be a whole number from 0 to 65535, got 65536'],
  [{ token: 'a b' }, 'token must be a text of visible ASCII characters without blanks'],
  [{ hosts: ['box:80'] }, 'hosts must be a list of host names without a port, got ["box:80"]'],
  [{ hosts: 'box' }, 'hosts must be a list of host names'],
  [{ hosts: ['http://box'] }, 'hosts must be'],
  [{ path: '/x' }, 'path is not a field; the fields are host, port, token, allowRemote, hosts'],
])('%j is refused when it is loaded, with a sentence that names the field', (config, sentence) => {
  const { issues = [] } = inspector.Config['~standard'].validate(config) as { issues?: { message: string }[] }
  expect(issues.map(({ message }) => message).join('\n')).toContain(`checkpoint-inspector: ${sentence}`)
})

test.each([
  {},
  { host: '::1' },
  { host: '0.0.0.0', token: 'x' },
  { host: '0.0.0.0', allowRemote: true },
  { hosts: ['box', 'a.b-c.de', '::1', 'fe80::1'] },
])('%j is accepted', (config) => {
  const { issues } = inspector.Config['~standard'].validate(config) as { issues?: unknown }
  expect(issues).toBeUndefined()
})

test('zero config is 127.0.0.1:9465 without a token', () => {
  const result = inspector.Config['~standard'].validate(undefined)
  expect(result).toEqual({ value: { host: '127.0.0.1', port: 9465, allowRemote: false, hosts: [] } })
})
