/** Every encoding of OTLP that the SDK plugin offers reaches a real collector, from configuration and from variables. */
import { afterEach, expect, test, vi } from 'vitest'
import * as policy from '../src/index.ts'
import * as nodeSdk from '../src/node-sdk.ts'
import { PROTOCOLS } from '../src/node-sdk/config.ts'
import { createApp } from './support/app.ts'
import { BUILT, startBackend, startCollector } from './support/pipeline.ts'
import { requirement } from './support/require.ts'
import { BARRIERS, forgetProcess, turn } from './support/sdk-plugin.ts'

const hasCollector = requirement(
  'the collector of the pipeline tests (run test/collector/build.sh, needs Go 1.26)',
  BUILT,
)
const WAIT = { timeout: 20_000, interval: 100 }

afterEach(() => {
  vi.unstubAllEnvs()
  forgetProcess()
})

for (const protocol of PROTOCOLS) {
  test.skipIf(!hasCollector).each(['configuration', 'variables'])(
    `spans and metrics arrive over ${protocol}, chosen by %s`,
    async (by) => {
      const backend = await startBackend()
      const collector = await startCollector({
        traces: backend.endpoint,
        overrides: ['exporters::otlp_http::encoding: json'],
      })
      const endpoint = protocol === 'grpc' ? collector.grpc : collector.otlp
      if (by === 'variables') {
        vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', protocol)
        vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', endpoint)
        vi.stubEnv('OTEL_EXPORTER_OTLP_COMPRESSION', 'gzip')
      }
      const app = await createApp({
        plugins: [[policy], [nodeSdk, by === 'variables' ? undefined : { protocol, endpoint }]],
      })
      await turn(app)
      await app.plugins.at(-1)?.dispose()
      await vi.waitFor(() => {
        for (const name of BARRIERS) expect(backend.bodies.join('')).toContain(`"name":"${name}"`)
      }, WAIT)
      await vi.waitFor(async () => {
        const text = await (await fetch(`http://127.0.0.1:${collector.port}/metrics`)).text()
        expect(
          text.split('\n').filter((line) => line.startsWith('dsh_checkpoint_barrier_duration_seconds_count{')),
        ).toHaveLength(BARRIERS.length)
      }, WAIT)
      expect(app.logs.filter((line) => line.startsWith('OpenTelemetry'))).toEqual([])
    },
  )
}
