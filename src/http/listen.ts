/** Where a plugin of this package may listen: the fields of its configuration, and what is refused when it is loaded. */
import { BlockList, isIP } from 'node:net'
import z from '@deepseek-ai/schemastery'
import type { Resolved } from '../config.ts'

/** Address, port and access of one endpoint. */
export interface ListenConfig {
  /** Address or host name to listen on. Beyond loopback it needs `token` or `allowRemote`. */
  host?: string
  /** TCP port; 0 takes a free one, which the log names. */
  port?: number
  /** Token that a client has to send. Absent: none. */
  token?: string
  /** Listen beyond loopback although there is no token. */
  allowRemote?: boolean
}

/** {@link ListenConfig} with its defaults filled in. */
export type ResolvedListen = Resolved<ListenConfig, 'token'>

const TOKEN_RULE = 'a text of visible ASCII characters without blanks'

/**
 * The fields of {@link ListenConfig}, for a plugin's own schema.
 * @param port - the default port.
 */
export function listenFields(port: number) {
  return {
    host: z
      .string()
      .default('127.0.0.1')
      .description('Address to listen on. Beyond loopback it needs token or allowRemote.'),
    port: z.number().min(0).max(65_535).step(1).default(port).description('TCP port. 0 takes a free one.'),
    token: z.string().role('secret').description('Token that a client has to send. Empty: none.'),
    allowRemote: z.boolean().default(false).description('Listen beyond loopback although there is no token.'),
  }
}

/** What each of the fields must be, in words. */
export const LISTEN_RULES = {
  host: 'an IP address or a host name',
  port: 'a whole number from 0 to 65535',
  token: TOKEN_RULE,
  allowRemote: 'true or false',
}

/** Conditions beyond what the schema can say. */
export const LISTEN_CHECKS = {
  // An empty host would listen on every address.
  host: (host: string) => /^[\w.:%-]+$/.test(host),
  port: Number.isInteger,
}

/** Whether an address can be reached from this machine alone. A name other than localhost may resolve to anything. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

interface Result<T> {
  readonly value?: T
  readonly issues?: readonly { readonly message: string }[]
}

/**
 * Check the token without ever showing it, and that nothing is opened to the network by accident.
 * @param plugin - name the sentences begin with.
 * @param schema - a checked schema with the {@link listenFields}.
 */
export function guarded<T extends ListenConfig, R extends ResolvedListen>(plugin: string, schema: z<T, R>): z<T, R> {
  const standard = schema['~standard'] as unknown as { validate: (input: unknown) => Result<R> }
  const { validate } = standard
  standard.validate = (input) => {
    const token = typeof input === 'object' && input !== null ? (input as { token?: unknown }).token : undefined
    const valid = token === undefined || token === null || (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token))
    const result = validate(valid ? input : { ...(input as object), token: undefined })
    const issues = [...(result.issues ?? [])]
    if (!valid) issues.push({ message: `${plugin}: token must be ${TOKEN_RULE}` })
    const { value } = result
    if (value !== undefined && valid && !value.allowRemote && value.token === undefined && !isLoopback(value.host)) {
      issues.push({
        message: `${plugin}: host must be a loopback address unless token is set or allowRemote is true, got ${JSON.stringify(value.host)}`,
      })
    }
    return issues.length > 0 ? { issues } : result
  }
  return schema
}
