/** The plugins of this package as a life mounts them, each with a config of the moment. */
import * as policy from '../../src/index.ts'
import * as inspector from '../../src/inspector.ts'
import * as nodeSdk from '../../src/node-sdk.ts'
import * as prometheus from '../../src/prometheus.ts'
import coalesced from '../../src/strategies/coalesced.ts'
import pipelined from '../../src/strategies/pipelined.ts'
import selective from '../../src/strategies/selective.ts'

/** One kind of plugin. */
export interface Candidate {
  /** Share of the rounds that mount it. */
  readonly often: number
  /** Plugin and config. @param below - a random whole number below its argument. */
  readonly create: (below: (limit: number) => number) => readonly [plugin: object, config: object]
}

const STRATEGIES = [coalesced, pipelined, selective]

/** All of them, the policy first. A plugin may come as another copy, as after a hot reload. */
export function createPlugins(endpoint: string): readonly Candidate[] {
  const copied = <T extends object>(plugin: T, below: (limit: number) => number): T =>
    below(4) === 1 ? { ...plugin } : plugin
  // A name is looked up, which makes for a slow start; and the collector's port is taken.
  const listen = (below: (limit: number) => number) => ({
    host: below(2) === 1 ? 'localhost' : '127.0.0.1',
    port: below(3) === 1 ? Number(new URL(endpoint).port) : 0,
  })
  return [
    {
      often: 0.9,
      create: (below) => [
        copied(policy, below),
        { overdueMs: 1 + below(3), ...(below(2) === 1 ? { allowUnguarded: true } : {}) },
      ],
    },
    {
      often: 0.6,
      create: (below) => [
        copied(STRATEGIES[below(STRATEGIES.length)] ?? coalesced, below),
        below(2) === 1 ? { tools: ['read'] } : {},
      ],
    },
    { often: 0.15, create: (below) => [copied(STRATEGIES[below(2)] ?? coalesced, below), {}] },
    { often: 0.5, create: (below) => [copied(prometheus, below), listen(below)] },
    { often: 0.5, create: (below) => [copied(inspector, below), listen(below)] },
    {
      often: 0.25,
      create: (below) => [
        copied(nodeSdk, below),
        { endpoint, protocol: 'http/json', metricsIntervalMs: 5 + below(100), shutdownTimeoutMs: 1_000 },
      ],
    },
  ]
}
