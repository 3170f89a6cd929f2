/** Debian's Chromium, without a window and without a word to the network. */
import { spawnSync } from 'node:child_process'
import { chromium, type Browser } from 'playwright-core'
import { requirement } from './require.ts'

/** One that answers: a file that is there but does not start is as good as none. */
const CHROMIUM = [process.env['CHROMIUM'], '/usr/bin/chromium'].find(
  (path) => path !== undefined && spawnSync(path, ['--version']).status === 0,
)

/** Whether it is installed; see `requirement`. */
export function hasChromium(): boolean {
  return requirement('Chromium (/usr/bin/chromium, or the path in CHROMIUM)', CHROMIUM !== undefined)
}

/** Start it with a profile of its own. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}
