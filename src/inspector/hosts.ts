/** Which `Host` headers are answered. A page elsewhere can point its own name at this machine, and would read the answer. */
import { isIP } from 'node:net'
import { isLoopback } from '../http/listen.ts'

/**
 * Make the check of a `Host` header. Names of this machine and the configured ones pass, whatever the port, so that a
 * tunnel works. Where the server listens beyond loopback every address passes, too: only a name can be pointed elsewhere.
 * @param host - address or name that is listened on.
 * @param hosts - further names.
 */
export function createHostCheck(host: string, hosts: readonly string[]): (header: string | undefined) => boolean {
  const names = new Set([host, ...hosts].map((name) => name.toLowerCase()))
  const remote = !isLoopback(host)
  return (header = '') => {
    const name = nameOf(header.toLowerCase())
    return name !== '' && (isLoopback(name) || names.has(name) || (remote && isIP(name) !== 0))
  }
}

/** The name without the port, and an IPv6 address without its brackets. */
function nameOf(header: string): string {
  const [, address, name] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/.exec(header) ?? []
  return address ?? name ?? ''
}
