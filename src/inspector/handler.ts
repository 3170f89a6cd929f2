/** Who gets to see what: host name, token, path, method, and then the page, the state or the stream. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createGuard, METHODS, pathOf, refuse, send } from '../http/answer.ts'
import type { Handler } from '../http/server.ts'
import type { LimitedLog } from '../log.ts'
import { readAssets } from './assets.ts'
import { PLUGIN, type ResolvedConfig } from './config.ts'
import { createHostCheck } from './hosts.ts'
import type { Recorder } from './recorder.ts'
import type { Streams } from './streams.ts'

/** What the handler needs from the plugin. */
export interface HandlerOptions {
  readonly config: Pick<ResolvedConfig, 'host' | 'hosts' | 'token'>
  readonly log: LimitedLog
  readonly recorder: Recorder
  readonly streams: Streams
}

/** Nothing from elsewhere, nothing inline, no text taken for markup, no frame around it. */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
}
const EVERY_HEADER = { 'Cross-Origin-Resource-Policy': 'same-origin' }
const REALM = 'realm="checkpoint inspector"'

/** Make the request handler of the inspector. */
export function createHandler({ config, log, recorder, streams }: HandlerOptions): Handler {
  const assets = readAssets()
  const isOurs = createHostCheck(config.host, config.hosts)
  const isAuthorized = createGuard(config.token, ['bearer', 'basic'])

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (!isOurs(request.headers.host)) return refuse(response, 403, {}, WRONG_HOST)
    // Basic alone: Firefox asks nobody for a password when Bearer is named, too.
    if (!isAuthorized(request.headers.authorization))
      return refuse(response, 401, { 'WWW-Authenticate': `Basic ${REALM}` })
    const path = pathOf(request.url)
    const asset = assets.get(path)
    if (asset === undefined && path !== STATE && path !== EVENTS) return refuse(response, 404)
    if (!METHODS.includes(request.method ?? '')) return refuse(response, 405, { Allow: METHODS.join(', ') })
    if (asset !== undefined)
      return send(response, 200, asset.body, { ...EVERY_HEADER, ...PAGE_HEADERS, 'Content-Type': asset.type })
    // A page elsewhere could not read the answer, but it could take all the places.
    if (!isSameOrigin(request)) return refuse(response, 403, {}, WRONG_ORIGIN)
    if (path === STATE) {
      return send(response, 200, `${JSON.stringify(recorder.state())}\n`, {
        ...EVERY_HEADER,
        'Content-Type': 'application/json',
      })
    }
    if (streams.full)
      return refuse(response, 503, { 'Retry-After': '10' }, 'as many pages are open as the inspector serves')
    if (request.method === 'HEAD')
      return send(response, 200, '', { ...EVERY_HEADER, 'Content-Type': 'text/event-stream' })
    return streams.add(response)
  }
  return async (request, response) => {
    try {
      answer(request, response)
    } catch (error) {
      log.warn('page', () => `${PLUGIN}: a request failed: ${String(error)}`)
      if (response.headersSent) response.destroy()
      else refuse(response, 500)
    }
  }
}

const STATE = '/api/state'
const EVENTS = '/api/events'
const WRONG_HOST =
  'this host name is not one of the inspector: use http://127.0.0.1 and its port, or add the name to its config field hosts'
const WRONG_ORIGIN = 'only the page of the inspector itself, and programs that are no browsers, may read this'

/** Programs send no `Sec-Fetch-Site`; `none` is an address typed by the user. */
function isSameOrigin({ headers }: IncomingMessage): boolean {
  return ['same-origin', 'none', undefined].includes(headers['sec-fetch-site'])
}
