/** Which of the two exposition formats a scraper wants. */

/** The formats that are offered, by name. */
export type Format = 'text' | 'openmetrics'

/** `Content-Type` of each format. */
export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

const OFFERS: readonly (MediaRange & { readonly format: Format })[] = [
  { format: 'text', type: 'text', subtype: 'plain', version: '0.0.4' },
  { format: 'openmetrics', type: 'application', subtype: 'openmetrics-text', version: '1.0.0' },
]

/**
 * Choose by quality, then by how exactly the format was named, then by the order in the header, then the classic text.
 * A scraper that accepts neither gets the classic text: every one reads it, and a 406 would only look like an outage.
 * @param accept - the `Accept` header, if there was one.
 */
export function negotiate(accept: string | undefined): Format {
  const ranges = parseAccept(accept ?? '*/*')
  let chosen: Format = 'text'
  let best: Match = NO_MATCH
  for (const offer of OFFERS) {
    const match = matchOf(offer, ranges)
    if (match.quality > 0 && isBetter(match, best)) {
      best = match
      chosen = offer.format
    }
  }
  return chosen
}

interface MediaRange {
  readonly type: string
  readonly subtype: string
  readonly version: string | undefined
}

interface AcceptedRange extends MediaRange {
  readonly quality: number
}

interface Match {
  readonly quality: number
  readonly exactness: number
  readonly position: number
}

const NO_MATCH: Match = { quality: 0, exactness: -1, position: Infinity }

function isBetter(match: Match, other: Match): boolean {
  if (match.quality !== other.quality) return match.quality > other.quality
  if (match.exactness !== other.exactness) return match.exactness > other.exactness
  return match.position < other.position
}

/** The most exact range that covers the offer sets its quality, as RFC 9110 says. */
function matchOf(offer: MediaRange, ranges: readonly AcceptedRange[]): Match {
  let match = NO_MATCH
  for (const [position, range] of ranges.entries()) {
    const exactness = exactnessOf(offer, range)
    if (exactness > match.exactness) match = { quality: range.quality, exactness, position }
  }
  return match
}

/** -1: not covered. Parameters other than the version (`escaping`, `charset`) do not change which format it is. */
function exactnessOf(offer: MediaRange, range: MediaRange): number {
  if (range.type === '*' && range.subtype === '*') return 0
  if (range.type !== offer.type) return -1
  if (range.subtype === '*') return 1
  if (range.subtype !== offer.subtype) return -1
  if (range.version === undefined) return 2
  return range.version === offer.version ? 3 : -1
}

function parseAccept(header: string): AcceptedRange[] {
  const ranges: AcceptedRange[] = []
  for (const part of header.toLowerCase().split(',')) {
    const [media = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    const [type = '', subtype = ''] = media.split('/')
    const quality = qualityOf(parameterOf(parameters, 'q'))
    if (type !== '' && subtype !== '')
      ranges.push({ type, subtype, version: parameterOf(parameters, 'version'), quality })
  }
  return ranges
}

function parameterOf(parameters: readonly string[], name: string): string | undefined {
  for (const parameter of parameters) {
    const [key = '', value = ''] = parameter.split('=').map((piece) => piece.trim())
    if (key === name) return value.replace(/^"(.*)"$/, '$1')
  }
  return undefined
}

/** A quality that is no number counts as not acceptable. */
function qualityOf(value: string | undefined): number {
  if (value === undefined) return 1
  const quality = value === '' ? Number.NaN : Number(value)
  return quality >= 0 && quality <= 1 ? quality : 0
}
