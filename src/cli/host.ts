/** What the commands need from the machine: a Node release and the harness packages. */
import { readFileSync } from 'node:fs'
import { UsageError } from './command.ts'

/** The packages that `testing/harness.ts` runs on; the versions are the ones this package is built and tested with. */
const HOST_PACKAGES = [
  '@deepseek-ai/cordis',
  '@deepseek-ai/dsh-agent',
  '@deepseek-ai/dsh-agent-loop',
  '@deepseek-ai/dsh-invariants',
  '@deepseek-ai/dsh-llm',
  '@deepseek-ai/dsh-session',
  '@deepseek-ai/dsh-session-persistence',
  '@deepseek-ai/dsh-session-persistence-jsonl',
  '@deepseek-ai/dsh-system-prompt',
  '@deepseek-ai/dsh-tools',
  '@opentelemetry/api',
] as const

interface Manifest {
  readonly name: string
  readonly version: string
  readonly engines: { readonly node: string }
  readonly devDependencies: Readonly<Record<string, string>>
}

/** Refuse a Node release older than `engines` says: the harness would fail later, in words of its own. */
export function assertNode(version: string = process.versions.node): void {
  const wanted = manifest().engines.node.replace(/^>=\s*/, '')
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number)
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  throw new UsageError(`Node ${wanted} or newer is needed, this is Node ${version}`)
}

/**
 * Import a module that runs on the harness.
 * @param command - command that needs it, for the message.
 * @param load - the dynamic import.
 * @throws UsageError that says what to install when the harness packages are absent or of another release.
 */
export async function importOnHost<T>(command: string, load: () => Promise<T>): Promise<T> {
  const missing = HOST_PACKAGES.filter((name) => !isInstalled(name))
  if (missing.length > 0)
    throw new UsageError(`${command}: ${missing.join(', ')} not installed. ${installHint(command)}`)
  try {
    return await load()
  } catch (error) {
    // A renamed export of another release is a SyntaxError at link time.
    if (!(error instanceof SyntaxError)) throw error
    throw new UsageError(
      `${command}: the installed harness packages do not fit (${error.message}). ${installHint(command)}`,
    )
  }
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    // Not found, or a package without an entry point: of no use in either case.
    return false
  }
}

function installHint(command: string): string {
  const { name, version, devDependencies } = manifest()
  const packages = HOST_PACKAGES.map((host) => `${host}@${devDependencies[host] ?? 'latest'}`)
  return (
    `The ${command} runs a real agent on the harness packages; install them side by side and call it again:\n\n` +
    `  npm install ${name}@${version} \\\n    ${packages.join(' \\\n    ')}\n  npx ${name} ${command}\n`
  )
}

/** The package's own manifest lies two folders up, from the sources and from the build alike. */
function manifest(): Manifest {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Manifest
}
