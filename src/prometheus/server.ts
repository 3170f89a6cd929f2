/** The scrape endpoint: a small HTTP server that can neither take the host down nor keep it alive. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from '../log.ts'
import { PLUGIN, type Config } from './config.ts'
import { createScrapeHandler, type ScrapeOptions } from './scrape.ts'

/** Quiet time between two attempts to take the port. */
export const RETRY_MS = 5_000
/** Longest time that {@link MetricsServer.close} takes; a scrape that is still running is cut off then. */
export const CLOSE_MS = 1_000
/** A scraper that sends or reads slower than this is cut off. */
const REQUEST_MS = 10_000
const MAX_CONNECTIONS = 64
const MAX_HEADER_BYTES = 8_192

/** What the server needs from the plugin. */
export interface MetricsServerOptions extends ScrapeOptions {
  readonly config: Config
  readonly logger: Logger & { info(message: string): void }
}

/** Serves one path over HTTP until it is closed, and goes on trying while its port is taken. */
export class MetricsServer {
  readonly #options: MetricsServerOptions
  readonly #server: Server
  #attempt: PromiseWithResolvers<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #failure = ''
  #closing: Promise<void> | undefined

  constructor(options: MetricsServerOptions) {
    this.#options = options
    const answer = createScrapeHandler(options)
    const server = createServer(
      {
        headersTimeout: REQUEST_MS,
        requestTimeout: REQUEST_MS,
        connectionsCheckingInterval: REQUEST_MS,
        maxHeaderSize: MAX_HEADER_BYTES,
      },
      (request, response) => {
        void answer(request, response)
        // Node keeps a connection whose request was running when the server was closed.
        response.once('close', () => {
          if (this.#closing !== undefined) server.closeIdleConnections()
        })
      },
    )
    server.maxConnections = MAX_CONNECTIONS
    server.timeout = REQUEST_MS
    server.on('listening', () => this.#listening())
    server.on('error', (error: NodeJS.ErrnoException) => this.#failed(error))
    // A scraper must not keep a process alive that is otherwise done.
    server.on('connection', (socket: Socket) => socket.unref())
    server.unref()
    this.#server = server
  }

  /** Begin to listen. Never throws: what goes wrong is logged and tried again. */
  open(): void {
    const { host, port } = this.#options.config
    this.#attempt = Promise.withResolvers()
    try {
      this.#server.listen({ host, port })
    } catch (error) {
      this.#failed(error as NodeJS.ErrnoException)
    }
  }

  /** Stop listening, let running scrapes end, close every socket; within {@link CLOSE_MS}. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    clearTimeout(this.#retry)
    const deadline = Promise.withResolvers<void>()
    const timer = setTimeout(deadline.resolve, CLOSE_MS)
    // A host name is still being looked up: Node would go on to listen on a server that was closed meanwhile.
    await Promise.race([this.#attempt?.promise, deadline.promise])
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await Promise.race([closed, deadline.promise])
    clearTimeout(timer)
    this.#server.closeAllConnections()
  }

  #listening(): void {
    this.#attempt?.resolve()
    if (this.#closing !== undefined) {
      this.#server.close()
      return
    }
    this.#failure = ''
    const { host, path } = this.#options.config
    const { port } = this.#server.address() as AddressInfo
    this.#options.logger.info(`${PLUGIN}: metrics at http://${authority(host, port)}${path}`)
  }

  #failed(error: NodeJS.ErrnoException): void {
    this.#attempt?.resolve()
    if (this.#closing !== undefined) return
    if (this.#server.listening) {
      this.#options.log.warn('server', () => `${PLUGIN}: ${codeOf(error)} while serving metrics`)
      return
    }
    const { host, port } = this.#options.config
    // Said once for each cause, not once for each attempt.
    if (this.#failure !== codeOf(error)) {
      this.#failure = codeOf(error)
      this.#options.logger.error(
        `${PLUGIN}: cannot listen on ${authority(host, port)}: ${reasonOf(error)}; ` +
          `metrics are kept but nobody can scrape them, trying again every ${RETRY_MS / 1_000} s`,
      )
    }
    this.#retry = setTimeout(() => this.open(), RETRY_MS).unref()
  }
}

function authority(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function codeOf(error: NodeJS.ErrnoException): string {
  return error.code ?? error.name
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'the port is taken (EADDRINUSE)'
    case 'EACCES':
      return 'this user may not use the port (EACCES)'
    default:
      return codeOf(error)
  }
}
