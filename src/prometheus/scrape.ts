/** What a scraper gets to see: one path, two methods, two formats. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LimitedLog } from '../log.ts'
import { PLUGIN, type Config } from './config.ts'
import { CONTENT_TYPES, negotiate, type Format } from './negotiate.ts'

/** What the handler needs from the plugin. */
export interface ScrapeOptions {
  readonly config: Pick<Config, 'path' | 'token'>
  readonly log: LimitedLog
  /** The exposition of now. A throw or a rejection is answered with 500. */
  readonly render: (format: Format) => Promise<string>
}

/** Answers one request; never rejects. */
export type ScrapeHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

const METHODS = ['GET', 'HEAD']
const CHALLENGE = 'Bearer realm="metrics"'

/** Make the request handler of the endpoint. */
export function createScrapeHandler({ config, log, render }: ScrapeOptions): ScrapeHandler {
  const isAuthorized = createGuard(config.token)
  return async (request, response) => {
    try {
      // First, so that a stranger does not learn what is here.
      if (!isAuthorized(request.headers.authorization)) refuse(response, 401, { 'WWW-Authenticate': CHALLENGE })
      else if (pathOf(request.url) !== config.path) refuse(response, 404)
      else if (!METHODS.includes(request.method ?? '')) refuse(response, 405, { Allow: METHODS.join(', ') })
      else {
        const format = negotiate(request.headers.accept)
        const body = await render(format)
        send(response, 200, body, { 'Content-Type': CONTENT_TYPES[format], Vary: 'Accept' })
      }
    } catch (error) {
      log.warn('scrape', () => `${PLUGIN}: a scrape failed: ${String(error)}`)
      if (response.headersSent) response.destroy()
      else refuse(response, 500)
    }
  }
}

/** Compares digests, so that neither the time nor the length tells how much of a token was right. */
function createGuard(token: string | undefined): (header: string | undefined) => boolean {
  if (token === undefined) return () => true
  const expected = digest(token)
  return (header = '') => {
    const [, given = ''] = /^bearer +(\S+)$/i.exec(header) ?? []
    return timingSafeEqual(digest(given), expected)
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  // Whatever else the client sends is not read.
  send(response, status, `${REASONS[status]}\n`, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close', ...headers })
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  500: 'Internal Server Error',
}

/** Node leaves out the body of an answer to HEAD by itself. */
function send(response: ServerResponse, status: number, body: string, headers: Record<string, string>): void {
  response.writeHead(status, {
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(body)
}

function pathOf(url = ''): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
