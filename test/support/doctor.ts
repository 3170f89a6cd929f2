/** Folders for the doctor: a dsh home or a project whose packages are manifests alone. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { examine } from '../../src/cli/doctor/doctor.ts'
import type { DoctorReport, Finding } from '../../src/cli/doctor/report.ts'
import { scratch } from './cli.ts'

/** Contents of a file: text, or JSON. */
type Files = Readonly<Record<string, string | object>>

/** The rows that matter of a stock bundle. */
const BASE_PATCH = `
- insert:
    - { id: llm-retry, name: '@deepseek-ai/dsh-llm-retry' }
    - { id: session-persistence-jsonl, name: '@deepseek-ai/dsh-session-persistence-jsonl', config: { root: !!js "dshHomePath('sessions')" } }
    - { id: session-checkpoint-policy, name: '@deepseek-ai/dsh-session-checkpoint-policy' }
    - { id: shell, name: '@deepseek-ai/dsh-tool-bash', disabled: !!js "process.platform === 'win32'" }
`
/** The bundle patch of this package. */
const OUR_PATCH = `
- { id: session-checkpoint-policy, disabled: true }
- insert: [{ id: session-checkpoint-otel, name: dsh-checkpoint-otel }]
`

/** Write files below a folder. */
export function write(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
}

/** A package: its manifest, with the version and whatever it imports. */
export function packageAt(path: string, version: string, more: object = {}): Files {
  const name = path.split('node_modules/').at(-1)
  return { [`${path}/package.json`]: { name, version, ...more } }
}

/** A healthy profile, with these lines as its own patch and these files over it. Answers the profile's folder. */
export function profile(patch = '[]', files: Files = {}): string {
  const home = scratch()
  const ours = {
    version: '0.1.0',
    dependencies: { '@opentelemetry/api': '*' },
    dsh: { bundle: { patch: 'cordis.patch.yml' } },
  }
  write(home, {
    'profiles/p/package.json': {
      dependencies: { 'dsh-checkpoint-otel': '*' },
      dsh: { profile: { bundles: ['base', 'dsh-checkpoint-otel'] } },
    },
    'profiles/p/cordis.patch.yml': patch,
    ...packageAt('profiles/node_modules/base', '1.0.0', { dsh: { bundle: { patch: 'patch.yml' } } }),
    'profiles/node_modules/base/patch.yml': BASE_PATCH,
    ...packageAt('profiles/p/node_modules/dsh-checkpoint-otel', '0.1.0', ours),
    'profiles/p/node_modules/dsh-checkpoint-otel/cordis.patch.yml': OUR_PATCH,
    ...packageAt('profiles/node_modules/@opentelemetry/api', '1.10.0'),
    ...packageAt('profiles/node_modules/@deepseek-ai/cordis', '4.0.4'),
    ...packageAt('profiles/node_modules/@deepseek-ai/dsh-llm-retry', '0.1.0-rc.8', {
      dependencies: { '@deepseek-ai/cordis': '*' },
    }),
    ...packageAt('profiles/node_modules/@deepseek-ai/dsh-session-persistence-jsonl', '0.1.0-rc.8', {
      dependencies: { '@deepseek-ai/dsh-session': '*' },
    }),
    ...packageAt('profiles/node_modules/@deepseek-ai/dsh-session', '0.1.0-rc.8'),
    ...packageAt('profiles/node_modules/@deepseek-ai/dsh-session-checkpoint-policy', '0.1.0-rc.8'),
    ...files,
  })
  return join(home, 'profiles/p')
}

/** Examine a folder without looking for a dsh on this machine. */
export async function doctor(
  dir: string,
  options: { config?: string; strict?: boolean; write?: boolean } = {},
): Promise<DoctorReport> {
  return examine({ dir, strict: false, write: false, ...options })
}

/** What was found that is not well, by id: level, or the levels where there are several. */
export function troubles({ findings }: DoctorReport): Record<string, string> {
  const bad = findings.filter(({ level }) => level === 'error' || level === 'warning')
  return Object.fromEntries(bad.map(({ id, level }) => [id, level]))
}

/** The first finding of an id. */
export function finding({ findings }: DoctorReport, id: string): Finding {
  const found = findings.find((each) => each.id === id)
  if (found === undefined)
    throw new Error(`nothing was found about ${id}; there is ${findings.map((each) => each.id).join(', ')}`)
  return found
}
