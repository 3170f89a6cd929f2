/** Configuration of the inspector plugin. */
import z from '@deepseek-ai/schemastery'
import { checked, type Resolved } from '../config.ts'
import { guarded, LISTEN_CHECKS, LISTEN_RULES, listenFields, type ListenConfig } from '../http/listen.ts'

/** Plugin name, also the beginning of its messages. */
export const PLUGIN = 'checkpoint-inspector'

/** Configuration of the inspector. Scripts send the token as a bearer token, a browser asks for it as a password. */
export interface Config extends ListenConfig {
  /** Further host names under which the page is reached, of a reverse proxy for example. Every other one is refused. */
  hosts?: string[]
}

/** {@link Config} with its defaults filled in. */
export type ResolvedConfig = Resolved<Config, 'token'>

/** Schema of {@link Config}; the only place where defaults live. */
export const Config: z<Config, ResolvedConfig> = guarded(
  PLUGIN,
  checked<Config, ResolvedConfig>(
    PLUGIN,
    z.object({
      ...listenFields(9465),
      hosts: z.array(z.string()).default([]).description('Further host names under which the page is reached.'),
    }) as unknown as z<Config, ResolvedConfig>,
    { ...LISTEN_RULES, hosts: 'a list of host names without a port' },
    { ...LISTEN_CHECKS, hosts: (hosts) => hosts.every((host) => /^([\w.-]+|[\da-f:.]*:[\da-f:.]*)$/i.test(host)) },
  ),
)
