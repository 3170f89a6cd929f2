/** Certificates: the SDK plugin brings connections of its own, and with them it has to bring the certificate variables. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import { createApp, tempFolder } from './support/app.ts'
import { requirement } from './support/require.ts'
import { turn } from './support/sdk-plugin.ts'

const hasOpenssl = requirement('openssl', spawnSync('openssl', ['version']).status === 0)

afterEach(() => void vi.unstubAllEnvs())

/** A receiver that wants to see a certificate; one self-signed certificate is authority, server and client. */
async function startTls() {
  const folder = tempFolder()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const extensions = ['-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:TRUE']
  const made = spawnSync('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
    '-days',
    '2',
    '-subj',
    '/CN=test',
    ...extensions,
  ])
  expect(made.status).toBe(0)
  const urls: string[] = []
  const pem = readFileSync(cert)
  const server = createServer(
    { key: readFileSync(key), cert: pem, ca: pem, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      urls.push(request.url ?? '')
      request.resume().on('end', () => response.writeHead(200).end())
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { endpoint: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, urls, key, cert }
}

async function exportTo(endpoint: string): Promise<string[]> {
  const app = await createApp({ plugins: [[policy], [nodeSdk, { endpoint, shutdownTimeoutMs: 2_000 }]] })
  await turn(app)
  const logs = app.logs
  await app.plugins.at(-1)?.dispose()
  return logs.filter((line) => line.startsWith('OpenTelemetry'))
}

test.skipIf(!hasOpenssl)('uses the authority, certificate and key that the variables name', async () => {
  const { endpoint, urls, key, cert } = await startTls()
  vi.stubEnv('OTEL_EXPORTER_OTLP_CERTIFICATE', cert)
  vi.stubEnv('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', cert)
  vi.stubEnv('OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY', key)
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY', key)
  expect(await exportTo(endpoint)).toEqual([])
  expect([...new Set(urls)].sort()).toEqual(['/v1/metrics', '/v1/traces'])
})

test.skipIf(!hasOpenssl)('sends nothing to a server whose authority it does not know', async () => {
  const { endpoint, urls } = await startTls()
  expect((await exportTo(endpoint)).join()).toContain('self-signed certificate')
  expect(urls).toEqual([])
})

test.skipIf(!hasOpenssl)('a certificate file that is not there is one line in the log', async () => {
  const { endpoint, urls } = await startTls()
  vi.stubEnv('OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere/ca.pem')
  const lines = await exportTo(endpoint)
  expect(lines.join()).toContain('/nowhere/ca.pem')
  expect(lines.length).toBeLessThanOrEqual(2)
  expect(urls).toEqual([])
})
