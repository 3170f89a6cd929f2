import { readFileSync } from 'node:fs'
import { satisfies } from 'semver'
import { expect, test } from 'vitest'

const { peerDependencies, peerDependenciesMeta } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as {
  peerDependencies: Record<string, string>
  peerDependenciesMeta: Record<string, { optional?: boolean }>
}

/** Releases that people run; a prerelease is admitted only where its own version is named. */
const RELEASES = {
  '@deepseek-ai/dsh-session': [
    '0.1.0-rc.6',
    '0.1.0-rc.8',
    '0.1.0',
    '0.1.1-rc.2',
    '0.1.5-rc.2',
    '0.1.5',
    '0.2.0-rc.1',
    '0.2.3',
  ],
  '@deepseek-ai/cordis': ['4.0.1', '4.0.4'],
  cordis: ['4.0.0-rc.10', '4.0.0'],
  '@opentelemetry/api': ['1.9.0', '1.9.1', '1.10.0'],
}
const REFUSED = {
  '@deepseek-ai/dsh-session': ['0.0.1-rc.1', '0.3.0', '1.0.0'],
  '@opentelemetry/api': ['1.8.0', '2.0.0'],
  cordis: ['3.18.1'],
}

test('the peer ranges admit the releases people run, prereleases included, and no others', () => {
  for (const [name, versions] of Object.entries(RELEASES)) {
    for (const version of versions)
      expect([name, version, satisfies(version, peerDependencies[name] ?? '')]).toEqual([name, version, true])
  }
  for (const [name, versions] of Object.entries(REFUSED)) {
    for (const version of versions)
      expect([name, version, satisfies(version, peerDependencies[name] ?? '')]).toEqual([name, version, false])
  }
})

test('all packages of the harness have one range, and every peer of the host is optional', () => {
  const host = Object.keys(peerDependencies).filter((name) => name !== '@opentelemetry/api')
  expect(new Set(host.filter((name) => name.includes('/dsh-')).map((name) => peerDependencies[name])).size).toBe(1)
  expect(host.filter((name) => peerDependenciesMeta[name]?.optional !== true)).toEqual([])
})
