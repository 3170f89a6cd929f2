/** Configuration of the Prometheus plugin, and what it refuses to do. */
import z from '@deepseek-ai/schemastery'
import { checked, type Resolved } from '../config.ts'
import { guarded, LISTEN_CHECKS, LISTEN_RULES, listenFields, type ListenConfig } from '../http/listen.ts'

/** Plugin name, also the beginning of its messages. */
export const PLUGIN = 'checkpoint-prometheus'

/** Configuration of the Prometheus plugin. The token is a bearer token. */
export interface Config extends ListenConfig {
  /** Path of the scrape. */
  path?: string
}

/** {@link Config} with its defaults filled in. */
export type ResolvedConfig = Resolved<Config, 'token'>

/** Schema of {@link Config}; the only place where defaults live. */
export const Config: z<Config, ResolvedConfig> = guarded(
  PLUGIN,
  checked<Config, ResolvedConfig>(
    PLUGIN,
    z.object({
      ...listenFields(9464),
      path: z.string().default('/metrics').description('Path of the scrape.'),
    }) as unknown as z<Config, ResolvedConfig>,
    { ...LISTEN_RULES, path: 'a path that begins with / and has neither ? nor # nor blanks' },
    { ...LISTEN_CHECKS, path: (path) => /^\/[^\s?#]*$/.test(path) },
  ),
)
