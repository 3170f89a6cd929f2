/** The host sets that the README names, as they install here. */
import type { HostSet } from './dsh-cli-hosts.ts'

const CORE = [
  'agent',
  'agent-loop',
  'invariants',
  'llm',
  'session',
  'session-persistence',
  'session-persistence-jsonl',
  'system-prompt',
  'tools',
]

/** What the core packages bring as peers, to be named where npm is told not to place peers. */
const CORE_PEERS = [
  'attachment',
  'brand',
  'code-runtime',
  'scope',
  'settings',
  'timeout',
  'typert-protocol',
  'user-approval',
]
const peersAt = (release: string) => Object.fromEntries(CORE_PEERS.map((each) => [`@deepseek-ai/dsh-${each}`, release]))

/** SDKs that go with an API version: 2.x wants less than 1.10, 3.x at least that. */
const API_1_9 = {
  '@opentelemetry/api': '1.9.1',
  '@opentelemetry/sdk-metrics': '2.9.0',
  '@opentelemetry/sdk-trace': '2.9.0',
}
const API_1_10 = {
  '@opentelemetry/api': '1.10.0',
  '@opentelemetry/sdk-metrics': '3.1.0',
  '@opentelemetry/sdk-trace': '3.1.0',
}

/** The policy's own dependency: the tarball itself is unpacked beside it, so that a set stays the same between builds. */
const OURS = { '@deepseek-ai/schemastery': '3.18.4' }

/** A set that the compatibility scenario runs on. */
export interface CompatHost extends HostSet {
  /** File in this folder that takes the place of the JSONL backend's package. */
  readonly backend?: string
  /** Releases of Cordis, session core and OpenTelemetry API. */
  readonly releases: readonly string[]
}

interface Choice {
  /** Release of each core package, by its name without the prefix. */
  readonly core: (name: string) => string
  readonly cordis?: string
  readonly otel?: Readonly<Record<string, string>>
  readonly overrides?: Readonly<Record<string, string>>
  readonly extra?: Readonly<Record<string, string>>
  readonly backend?: string
  readonly args?: readonly string[]
}

/** Its only release wants peers that do not exist any more. */
const SQLITE = { '@deepseek-ai/dsh-session-persistence-sqlite': '0.0.1-rc.1' }

/** Every set, newest core last. */
export const HOST_SETS: readonly CompatHost[] = [
  set('core-rc8', { core: () => '0.1.0-rc.8' }),
  set('core-rc8-api-1.9', { core: () => '0.1.0-rc.8', otel: API_1_9 }),
  set('core-rc8-upstream-cordis', {
    core: () => '0.1.0-rc.8',
    cordis: 'npm:cordis@4.0.0-rc.10',
    overrides: { '@deepseek-ai/cordis': '$@deepseek-ai/cordis' },
  }),
  // No release of the JSONL backend but rc.8 goes with these.
  set('core-rc6', {
    core: (name) => (name === 'session-persistence-jsonl' ? '0.1.0-rc.8' : '0.1.0-rc.6'),
    extra: peersAt('0.1.0-rc.6'),
    args: ['--legacy-peer-deps'],
  }),
  set('core-0.1.1-rc2', {
    core: (name) => (['agent', 'invariants', 'llm', 'session'].includes(name) ? '0.1.1-rc.2' : '0.1.0-rc.8'),
    extra: peersAt('0.1.0-rc.8'),
    args: ['--legacy-peer-deps'],
  }),
  set('core-rc8-sqlite', {
    core: () => '0.1.0-rc.8',
    extra: SQLITE,
    backend: 'compat-sqlite.mjs',
    overrides: Object.fromEntries(
      ['invariants', 'session', 'session-persistence'].map((each) => [
        `@deepseek-ai/dsh-${each}`,
        `$@deepseek-ai/dsh-${each}`,
      ]),
    ),
  }),
]

function set(
  name: string,
  { core, cordis = '4.0.4', otel = API_1_10, overrides, extra, backend, args }: Choice,
): CompatHost {
  const packages = Object.fromEntries(CORE.map((each) => [`@deepseek-ai/dsh-${each}`, core(each)]))
  const dependencies = { ...packages, '@deepseek-ai/cordis': cordis, ...otel, ...OURS, ...extra }
  const releases = [cordis.replace(/^npm:cordis@/, ''), core('session'), otel['@opentelemetry/api'] ?? '']
  return {
    name,
    releases,
    manager: 'npm',
    manifest: { private: true, type: 'module', dependencies, overrides },
    args,
    backend,
  }
}
