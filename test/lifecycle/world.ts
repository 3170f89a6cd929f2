/** What surrounds the plugins: a collector, a slow name service, a tracer that counts. */
import dns from 'node:dns'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { trace } from '@opentelemetry/api'
import { TracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace'

/** A collector that takes everything. */
export async function startSink() {
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    request.resume().on('end', () => response.end('{}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Let every look-up of a host name take a while. */
export function delayLookups(delayMs: () => number) {
  const { lookup } = dns
  const slow = (...args: unknown[]) =>
    void setTimeout(() => (lookup as (...all: unknown[]) => void)(...args), delayMs())
  dns.lookup = Object.assign(slow, lookup) as unknown as typeof lookup
  return { restore: () => void (dns.lookup = lookup) }
}

/** A tracer of the host, which counts the spans that were begun and not ended. */
export function registerCountingTracer() {
  let started = 0
  let ended = 0
  const counter: SpanProcessor = {
    onStart: () => void (started += 1),
    onEnd: (_span: ReadableSpan) => void (ended += 1),
    forceFlush: async () => {},
    shutdown: async () => {},
  }
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [counter] }))
  return { open: () => started - ended, ended: () => ended }
}
