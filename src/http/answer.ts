/** The answers that every endpoint of this package gives alike. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { ServerResponse } from 'node:http'

/** Methods that an endpoint without any effect has. */
export const METHODS: readonly string[] = ['GET', 'HEAD']

const REASONS = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const

/** Statuses of {@link refuse}. */
export type Refusal = keyof typeof REASONS

/**
 * Refuse a request; whatever else the client sends is not read.
 * @param reason - one line for people; the name of the status when absent.
 */
export function refuse(
  response: ServerResponse,
  status: Refusal,
  headers: Record<string, string> = {},
  reason?: string,
): void {
  const type = 'text/plain; charset=utf-8'
  send(response, status, `${reason ?? REASONS[status]}\n`, { 'Content-Type': type, Connection: 'close', ...headers })
}

/** Answer in full. Node leaves out the body of an answer to HEAD by itself. */
export function send(response: ServerResponse, status: number, body: string, headers: Record<string, string>): void {
  response.writeHead(status, {
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(body)
}

/** The path of a request target, without its query. */
export function pathOf(url = ''): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}

/** How a client may send the token: as a bearer token, and where a browser has to ask its user, as the password of Basic. */
export type Scheme = 'bearer' | 'basic'

/**
 * Make the check of an `Authorization` header. It compares digests, so that neither the time nor the length tells how
 * much of a token was right.
 * @param token - absent: everybody may.
 */
export function createGuard(
  token: string | undefined,
  schemes: readonly Scheme[],
): (header: string | undefined) => boolean {
  if (token === undefined) return () => true
  const expected = digest(token)
  return (header = '') => {
    const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+)$/i.exec(header) ?? []
    const kind = scheme.toLowerCase() as Scheme
    return timingSafeEqual(digest(kind === 'basic' ? passwordOf(given) : given), expected) && schemes.includes(kind)
  }
}

function passwordOf(credentials: string): string {
  const text = Buffer.from(credentials, 'base64').toString()
  return text.slice(text.indexOf(':') + 1)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
