/** Configuration of the Prometheus plugin, and what it refuses to do. */
import { BlockList, isIP } from 'node:net'
import z from '@deepseek-ai/schemastery'
import { checked } from '../config.ts'

/** Plugin name, also the beginning of its messages. */
export const PLUGIN = 'checkpoint-prometheus'

/** Configuration of the Prometheus plugin. */
export interface Config {
  /** Address or host name to listen on. Beyond loopback it needs `token` or `allowRemote`. */
  host: string
  /** TCP port; 0 takes a free one, which the log names. */
  port: number
  /** Path of the scrape. */
  path: string
  /** Bearer token that a scraper has to send. Absent: none. */
  token?: string
  /** Listen beyond loopback although there is no token. */
  allowRemote: boolean
}

const TOKEN_RULE = 'a text of visible ASCII characters without blanks'

/** Schema of {@link Config}; the only place where defaults live. */
export const Config: z<Config> = guarded(
  checked<Config>(
    PLUGIN,
    z.object({
      host: z.string().default('127.0.0.1').description('Address to listen on. Beyond loopback it needs token or allowRemote.'),
      port: z.number().min(0).max(65_535).step(1).default(9464).description('TCP port. 0 takes a free one.'),
      path: z.string().default('/metrics').description('Path of the scrape.'),
      token: z.string().role('secret').description('Bearer token that a scraper has to send. Empty: none.'),
      allowRemote: z.boolean().default(false).description('Listen beyond loopback although there is no token.'),
    }) as unknown as z<Config>,
    {
      host: 'an IP address or a host name',
      port: 'a whole number from 0 to 65535',
      path: 'a path that begins with / and has neither ? nor # nor blanks',
      token: TOKEN_RULE,
      allowRemote: 'true or false',
    },
    {
      // An empty host would listen on every address.
      host: (host) => /^[\w.:%-]+$/.test(host),
      port: Number.isInteger,
      path: (path) => /^\/[^\s?#]*$/.test(path),
    },
  ),
)

/** Whether an address can be reached from this machine alone. A name other than localhost may resolve to anything. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

interface Result {
  readonly value?: Config
  readonly issues?: readonly { readonly message: string }[]
}

/** Check the token without ever showing it, and that nothing is opened to the network by accident. */
function guarded(schema: z<Config>): z<Config> {
  const standard = schema['~standard'] as unknown as { validate: (input: unknown) => Result }
  const { validate } = standard
  standard.validate = (input) => {
    const token = typeof input === 'object' && input !== null ? (input as { token?: unknown }).token : undefined
    const valid = token === undefined || token === null || (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token))
    const result = validate(valid ? input : { ...(input as object), token: undefined })
    const issues = [...(result.issues ?? [])]
    if (!valid) issues.push({ message: `${PLUGIN}: token must be ${TOKEN_RULE}` })
    const { value } = result
    if (value !== undefined && valid && !value.allowRemote && value.token === undefined && !isLoopback(value.host)) {
      issues.push({
        message: `${PLUGIN}: host must be a loopback address unless token is set or allowRemote is true, got ${JSON.stringify(value.host)}`,
      })
    }
    return issues.length > 0 ? { issues } : result
  }
  return schema
}
