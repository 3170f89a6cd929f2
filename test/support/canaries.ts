/** Words that no surface may show, each put where somebody's own words would be. */

/** Canary by the place it is planted in. */
export const CANARIES = {
  prompt: 'canary-prompt-7f3a',
  systemPrompt: 'canary-system-1c9d',
  answer: 'canary-answer-b2e4',
  reasoningArgs: 'canary-args-90aa',
  result: 'canary-result-5d1e',
  bodyError: 'canary-body-error-33c0',
  flushError: 'canary-flush-error-8812',
  adapterError: 'canary-adapter-error-4f4f',
  path: 'canary-path-6a07',
  endpointCredentials: 'canary-user-2b2b',
  configHeader: 'canary-config-header-71d2',
  envHeader: 'canary-env-header-c4c4',
  metricsToken: 'canary-metrics-token-0e0e',
  inspectorToken: 'canary-inspector-token-d9d9',
  environment: 'canary-environment-5b5b',
  title: 'canary-title-a1a1',
  parallelCheck: 'canary-parallel-check-e7e7',
} as const

/** The canaries that a text holds, by their places. */
export function canariesIn(text: string): string[] {
  return Object.entries(CANARIES).flatMap(([place, word]) =>
    text.includes(word) || text.includes(encodeURIComponent(word)) ? [place] : [],
  )
}
