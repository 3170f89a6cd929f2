/** What a scraper gets to see: one path, two methods, two formats. */
import { createGuard, METHODS, pathOf, refuse, send } from '../http/answer.ts'
import type { Handler } from '../http/server.ts'
import type { LimitedLog } from '../log.ts'
import { PLUGIN, type ResolvedConfig } from './config.ts'
import { CONTENT_TYPES, negotiate, type Format } from './negotiate.ts'

/** What the handler needs from the plugin. */
export interface ScrapeOptions {
  readonly config: Pick<ResolvedConfig, 'path' | 'token'>
  readonly log: LimitedLog
  /** The exposition of now. A throw or a rejection is answered with 500. */
  readonly render: (format: Format) => Promise<string>
}

const CHALLENGE = 'Bearer realm="metrics"'

/** Make the request handler of the endpoint. */
export function createScrapeHandler({ config, log, render }: ScrapeOptions): Handler {
  const isAuthorized = createGuard(config.token, ['bearer'])
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
