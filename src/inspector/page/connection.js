/**
 * The stream of updates, and what became of it.
 * @import { InspectorState, InspectorUpdate } from '../state.ts'
 */

/** The process says something at least every 5 s; silent for this long, it is stuck or gone. */
const SILENT_MS = 12_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000

/**
 * @typedef {object} Listener
 * @property {(state: InspectorState) => void} onState - everything, after each connect.
 * @property {(update: InspectorUpdate) => void} onUpdate
 * @property {(status: 'live' | 'lost' | 'full') => void} onStatus - `full`: too many pages are open.
 */

/**
 * Keep a stream open while the page is visible: a hidden page must not cost the agent anything.
 * @param {Listener} listener
 */
export function connect({ onState, onUpdate, onStatus }) {
  /** @type {EventSource | undefined} */
  let source
  let retryMs = RETRY_MS
  let watchdog = 0
  let retry = 0

  const close = () => {
    source?.close()
    source = undefined
    clearTimeout(watchdog)
    clearTimeout(retry)
  }
  const lost = () => {
    close()
    // The stream does not say why it was refused.
    fetch('api/events', { method: 'HEAD' }).then(
      ({ status }) => onStatus(status === 503 ? 'full' : 'lost'),
      () => onStatus('lost'),
    )
    retry = setTimeout(open, retryMs)
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2)
  }
  const heard = () => {
    clearTimeout(watchdog)
    watchdog = setTimeout(lost, SILENT_MS)
  }
  const open = () => {
    close()
    if (document.hidden) return
    source = new EventSource('api/events')
    heard()
    // Whatever went wrong, a new connection gets everything anew: nothing is missed, and nothing comes twice.
    source.addEventListener('error', lost)
    source.addEventListener('beat', heard)
    source.addEventListener('state', (event) => {
      heard()
      retryMs = RETRY_MS
      onStatus('live')
      onState(JSON.parse(event.data))
    })
    source.addEventListener('update', (event) => {
      heard()
      onUpdate(JSON.parse(event.data))
    })
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close()
    else open()
  })
  open()
}
