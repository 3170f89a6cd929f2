/** A small HTTP server that can neither take the host down nor keep it alive. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { LimitedLog, Logger } from '../log.ts'
import type { ResolvedListen } from './listen.ts'

/** Quiet time between two attempts to take the port. */
export const RETRY_MS = 5_000
/** A client that sends or reads slower than this is cut off. */
const REQUEST_MS = 10_000
const MAX_CONNECTIONS = 64
const MAX_HEADER_BYTES = 8_192

/** Answers one request; never rejects. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** What the server needs from the plugin. */
export interface LocalServerOptions {
  /** Plugin name, the beginning of its messages. */
  readonly plugin: string
  readonly config: Pick<ResolvedListen, 'host' | 'port'>
  /** Path that the log names. */
  readonly path: string
  /** What is served, as in `metrics at http://…`. */
  readonly serves: string
  /** What it means that nobody can connect, for the log. */
  readonly unreachable: string
  readonly answer: Handler
  readonly logger: Pick<Logger, 'error' | 'info'>
  readonly log: LimitedLog
}

/** Serves one endpoint until it is closed, and goes on trying while its port is taken. */
export class LocalServer {
  readonly #options: LocalServerOptions
  readonly #server: Server
  #retry: NodeJS.Timeout | undefined
  #failure = ''
  #closed = false

  constructor(options: LocalServerOptions) {
    this.#options = options
    const { answer } = options
    const server = createServer(
      {
        headersTimeout: REQUEST_MS,
        requestTimeout: REQUEST_MS,
        connectionsCheckingInterval: REQUEST_MS,
        maxHeaderSize: MAX_HEADER_BYTES,
      },
      (request, response) => void answer(request, response),
    )
    server.maxConnections = MAX_CONNECTIONS
    server.timeout = REQUEST_MS
    server.on('listening', () => this.#listening())
    server.on('error', (error: NodeJS.ErrnoException) => this.#failed(error))
    // A client must not keep a process alive that is otherwise done.
    server.on('connection', (socket: Socket) => socket.unref())
    server.unref()
    this.#server = server
  }

  /** Begin to listen. Never throws: what goes wrong is logged and tried again. */
  open(): void {
    const { host, port } = this.#options.config
    try {
      this.#server.listen({ host, port })
    } catch (error) {
      this.#failed(error as NodeJS.ErrnoException)
    }
  }

  /**
   * Stop listening and close every connection, at once: an answer is written within one turn of the event loop, so what
   * is cut off is a client that is slow to ask or to read. Node itself forgets a host name that is still looked up.
   */
  close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  #listening(): void {
    this.#failure = ''
    const { plugin, config, path, serves } = this.#options
    const { port } = this.#server.address() as AddressInfo
    this.#options.logger.info(`${plugin}: ${serves} at http://${authority(config.host, port)}${path}`)
  }

  #failed(error: NodeJS.ErrnoException): void {
    // A listen that fails in the tick in which it was given up.
    if (this.#closed) return
    const { plugin, config, serves, unreachable, logger, log } = this.#options
    if (this.#server.listening) {
      log.warn('server', () => `${plugin}: ${codeOf(error)} while serving ${serves}`)
      return
    }
    // Said once for each cause, not once for each attempt.
    if (this.#failure !== codeOf(error)) {
      this.#failure = codeOf(error)
      logger.error(
        `${plugin}: cannot listen on ${authority(config.host, config.port)}: ${reasonOf(error)}; ` +
          `${unreachable}, trying again every ${RETRY_MS / 1_000} s`,
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
  const reason = REASONS[codeOf(error)]
  return reason === undefined ? codeOf(error) : `${reason} (${codeOf(error)})`
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken',
  EACCES: 'this user may not use the port',
}
