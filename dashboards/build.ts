/** Write the committed JSON and YAML: `npm run dashboards`. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { incident } from './incident.ts'
import { latency } from './latency.ts'
import { overview } from './overview.ts'
import { grafanaRules, prometheusRules, runbook } from './rules.ts'

/** Every generated file of this folder: path relative to it, and content. */
export function artifacts(): Readonly<Record<string, string>> {
  return {
    'overview.json': json(overview()),
    'latency.json': json(latency()),
    'incident.json': json(incident()),
    'checkpoint.rules.yaml': prometheusRules(),
    'provisioning/alerting/checkpoint.yaml': grafanaRules(),
    'RUNBOOK.md': runbook(),
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, content] of Object.entries(artifacts())) writeFileSync(new URL(path, import.meta.url), content)
}
