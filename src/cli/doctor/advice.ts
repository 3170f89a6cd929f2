/** Lines to copy: how a row is changed where the caller is. */
import { join } from 'node:path'
import type { Place } from './place.ts'
import { OUR_ROW, STOCK_ROW, type Row } from './rows.ts'
import { SCOPE_NAME } from '../../semconv.ts'

/** Advice for one place. */
export interface Advice {
  /** Switch a row off. */
  off(row: Row): string
  /** Put rows in, as lines of a list of rows. */
  put(...lines: readonly string[]): string
  /** Change fields of a row's config. */
  set(row: Row, config: string): string
  /** Put the package itself in. */
  readonly mount: string
}

/** Advice in words of a profile's patch, of a file of rows, or of code. */
export function adviceFor(place: Place, source: string): Advice {
  if (place.kind === 'profile') {
    const patch = join(place.folder, 'cordis.patch.yml')
    return {
      off: ({ id }) => `add to ${patch}:\n- id: ${id}\n  disabled: true`,
      put: (...lines) => `add to ${patch}:\n- insert:\n${lines.map((line) => `    ${line}`).join('\n')}`,
      set: ({ id }, config) =>
        `add to ${patch}, with the other fields of this row's config if it has any (a patch replaces the whole config):\n- id: ${id}\n  config: ${config}`,
      mount: `dsh plugin --profile ${place.profile ?? ''} add ${SCOPE_NAME}`,
    }
  }
  return {
    off: ({ id, name }) => `in ${source}, add to the row ${id || name}:\n  disabled: true`,
    put: (...lines) => `add to ${source}:\n${lines.join('\n')}`,
    set: ({ id, name }, config) => `in ${source}, in the config of the row ${id || name}, set:\n  ${config}`,
    mount: `npm install ${SCOPE_NAME}, then in ${source} in place of ${STOCK_ROW}:\n- id: ${OUR_ROW}\n  name: ${SCOPE_NAME}`,
  }
}
