/** The files of the page. Read once, when the plugin is loaded; nothing else of the disk can be reached. */
import { readFileSync } from 'node:fs'
import { DOCUMENT, ICON } from './page/document.ts'
import { STYLE } from './page/style.ts'

/** One file, ready to be sent. */
export interface Asset {
  readonly type: string
  readonly body: string
}

const SCRIPTS = [
  'main.js',
  'connection.js',
  'verdict.js',
  'tables.js',
  'barriers.js',
  'histograms.js',
  'format.js',
  'dom.js',
]

/** Files by path. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const assets = new Map<string, Asset>([
    ['/', { type: 'text/html; charset=utf-8', body: DOCUMENT }],
    ['/page/style.css', { type: 'text/css; charset=utf-8', body: STYLE }],
    ['/page/icon.svg', { type: 'image/svg+xml', body: ICON }],
  ])
  for (const name of SCRIPTS) {
    const body = readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8')
    assets.set(`/page/${name}`, { type: 'text/javascript; charset=utf-8', body })
  }
  return assets
}
