import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.spec.ts'],
    pool: 'forks',
    maxWorkers: '100%',
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    coverage: { include: ['src/**/*.ts'], exclude: ['src/cli/**'] },
  },
})
