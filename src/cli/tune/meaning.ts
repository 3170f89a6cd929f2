/** What a variant means for the transcript, the guarantees and the files, besides its speed. */
import type { Variant } from '../bench/variants.ts'

/** The two sides a person weighs against the waiting. */
export interface Meaning {
  /** Whether every guarded call and request still waits for its own durable record. */
  readonly safe: boolean
  /** Sentences. */
  readonly notes: readonly string[]
}

/**
 * Describe a change.
 * @param from - what is used now.
 */
export function meaningOf(from: Variant, to: Variant): Meaning {
  return {
    safe: to.strategy !== 'selective',
    notes: [...(to.strategy === from.strategy ? [] : strategyNotes(to)), ...settingNotes(from, to)],
  }
}

function strategyNotes({ strategy }: Variant): string[] {
  switch (strategy) {
    case 'stock':
    case 'default':
      return ['Guarantees and transcript as with the stock policy.']
    case 'coalesced':
      return [
        'No request leaves and no tool runs before its record is durable, as now. The step barrier is left to the request that follows: while a prompt is put together, the last results may not be on disk yet.',
        'Parallel calls share one write: they begin together, after the last of them is recorded.',
        'The transcript holds the same events in the same order.',
      ]
    case 'pipelined':
      return [
        'No request leaves and no tool runs before its record is durable, as now. The write of a step starts at once and is waited for at the request: while a prompt is put together, the last results may not be on disk yet.',
        'Parallel calls share one write: they begin together, after the last of them is recorded.',
        'The transcript holds the same events in the same order.',
      ]
    case 'selective':
      return [
        'Weaker: the tools you name run before their call is on disk. After a crash such a call may be missing from the log although it ran; name only tools whose loss is harmless, reads above all.',
        'Measured with every tool released: the most it can save.',
      ]
  }
}

function settingNotes(from: Variant, to: Variant): string[] {
  const notes: string[] = []
  if (to.encoding !== from.encoding) {
    if (to.encoding === 'raw')
      notes.push('Raw logs are several times larger than zstd ones, and readable with any tool.')
    if (to.encoding === 'zstd') notes.push('zstd logs are several times smaller than raw ones.')
    if (to.encoding === 'sqlite') notes.push('Sessions go to one SQLite file instead of one log each.')
    notes.push(
      'The backend reads one encoding per folder, hence the new folder: sessions recorded so far stay in the old one and are not listed until you go back.',
    )
  }
  if (to.delayMs < from.delayMs)
    notes.push('Write-behind sooner: less is lost in a crash between barriers, for more writes.')
  if (to.delayMs > from.delayMs)
    notes.push('Write-behind later: more is lost in a crash between barriers, for fewer writes.')
  return notes
}

/** How much a change asks of the person who makes it; between equals the smaller wins. */
export function effortOf(from: Variant, to: Variant): number {
  return (
    (to.encoding === from.encoding ? 0 : 2) +
    (to.delayMs === from.delayMs ? 0 : 1) +
    (['stock', 'default', from.strategy].includes(to.strategy) ? 0 : 1)
  )
}
