import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.spec.ts'],
    pool: 'forks',
    maxWorkers: '100%',
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 20_000,
    // Real processes, disks and browsers on a shared machine: one more try, which the report shows.
    retry: process.env['CI'] === undefined ? 0 : 1,
    hookTimeout: 30_000,
    coverage: { include: ['src/**/*.ts'], exclude: ['src/cli/**'] },
  },
})
