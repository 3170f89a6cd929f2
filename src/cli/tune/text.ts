/** The recommendation for a terminal. */
import { NOISE_RULE, type Estimate } from '../bench/statistics.ts'
import { prose, ratioText, syncLines } from '../bench/text.ts'
import { nameOf } from '../bench/variants.ts'
import { duration, paint, renderTable } from '../table.ts'
import type { Candidate, TuneReport } from './report.ts'

/** Write it out. */
export function tuneText(report: TuneReport): string {
  const { logs, turns, barriers, replay, recorded } = report
  return [
    paint('bold', 'What the recorded turns would wait on this disk'),
    ...prose([
      `  ${count(turns, 'finished turn')} in ${count(logs.length, 'log')}, ${count(barriers, 'barrier')}; ${replay.sampledTurns} of the turns were replayed under each setting, ${count(replay.blocks, 'time')} in all, in ${replay.seconds.toFixed(0)} s.`,
      `  Gaps passed in full up to ${replay.capMs} ms and were cut there; after a gap longer than the write-behind delay, its write was made.`,
      `  Of the logs only sizes, times and overlaps were used. They are taken to be recorded under ${nameOf(recorded)}.`,
      `  ${levelText(report.level)}`,
      ...syncLines(report.folder, report.sync),
      ...logs.filter(({ version, torn }) => version > 0 || torn).map(logLine),
      ...report.skipped.map(({ path, why }) => paint('yellow', `  Left out: ${path}: ${why}`)),
      ...report.absent.map((line) => `  Not replayed: ${line}.`),
    ]),
    '',
    renderTable(
      COLUMNS,
      report.ranked.map((candidate) => rowOf(candidate, report.recommended)),
    ),
    ...prose([
      paint('dim', '  Intervals: 95 % bootstrap over the replays. * runs tools before their call is on disk.'),
      ...(replay.assemblyMs > 0
        ? []
        : [
            paint(
              'dim',
              '  Putting a prompt together leaves no event; what it takes, pipelined saves on top (--assembly tells it).',
            ),
          ]),
    ]),
    '',
    ...adviceLines(report),
  ].join('\n')
}

const COLUMNS = [
  { title: '' },
  { title: 'strategy, encoding, write-behind' },
  { title: 'waiting to now', numeric: true },
  { title: 'per turn', numeric: true },
  { title: 'share of the turn', numeric: true },
]

function rowOf(candidate: Candidate, recommended: Candidate | undefined): string[] {
  const { ratio, waitedPerTurnMs, share, finding, safe } = candidate
  const mark = candidate === recommended ? '>' : finding === 'recorded' ? 'now' : ''
  return [
    mark,
    `${nameOf(candidate)}${safe ? '' : ' *'}`,
    finding === 'recorded' ? '1' : ratioText(ratio),
    duration(waitedPerTurnMs.median),
    percentText(share),
  ]
}

function adviceLines({ recommended, recorded, noise, steady, replay }: TuneReport): string[] {
  const certainty = `${count(replay.blocks, 'replay')}; the recorded setting against itself: ${ratioText(noise)}`
  if (!steady) {
    return prose([
      paint('yellow', 'No recommendation: this machine is too noisy to conclude.'),
      `  ${certainty}; ${NOISE_RULE}.`,
      '  Stop other work on the disk, or give it more time with --seconds.',
    ])
  }
  if (recommended === undefined) {
    return prose([
      paint('bold', 'Change nothing: no setting that keeps the guarantees waits less with any certainty.'),
      `  Now ${percentText(recorded.share)} of a turn is waiting. ${certainty}.`,
    ])
  }
  return [
    ...prose([
      paint('bold', `Use ${nameOf(recommended)}`),
      `  Waiting falls from ${duration(recorded.waitedPerTurnMs.median)} to ${duration(recommended.waitedPerTurnMs.median)} per turn, from ${percent(recorded.share.median)} to ${percentText(recommended.share)} of its time.`,
      `  How sure: ×${ratioText(recommended.ratio)}, ${certainty}.`,
      ...recommended.notes.map((note) => `  ${note}`),
    ]),
    ...(recommended.patch === ''
      ? []
      : [
          '',
          "  To paste into the profile's cordis.patch.yml:",
          '',
          ...recommended.patch
            .trimEnd()
            .split('\n')
            .map((line) => `    ${line}`),
        ]),
  ]
}

function levelText({ from, pace, perBarrierMs }: TuneReport['level']): string {
  const each = `a barrier takes ${duration(perBarrierMs)}`
  if (from === 'both')
    return `The gaps before the recorded steps tell of waits ${pace?.toFixed(1)} times as long as the replay; half way, ${each}.`
  if (pace === undefined) return `The level is that of the replay: ${each}.`
  return `The level is that of the replay: ${each}; the logs tell of ${pace.toFixed(1)} times that, as of another disk.`
}

function logLine({ path, version, torn }: TuneReport['logs'][number]): string {
  const notes = [
    ...(version > 0 ? [`log format version ${version}, read as far as it carries these events`] : []),
    ...(torn ? ['its torn end was left out'] : []),
  ]
  return `  ${path}: ${notes.join('; ')}`
}

function percentText({ median, low, high }: Estimate): string {
  return low === high ? percent(median) : `${percent(median)} (${percent(low)}-${percent(high)})`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
