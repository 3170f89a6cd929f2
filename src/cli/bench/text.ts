/** The benchmark's report for a terminal. */
import { duration, paint, renderTable } from '../table.ts'
import { wrap } from '../wrap.ts'
import type { BenchCell, BenchReport, BenchWorkload } from './report.ts'
import { NOISE_RULE, type Estimate } from './statistics.ts'
import type { SyncReport } from './fsync.ts'
import { nameOf, settingName } from './variants.ts'

/** Write it out. */
export function benchText(report: BenchReport): string {
  const { machine, rounds, steps, reference, sync } = report
  return [
    paint('bold', 'What barriers cost on this disk'),
    ...prose([
      `  ${machine.cpu}, ${machine.cpus} processors, load ${machine.load.toFixed(1)}; Node ${machine.node}; ${machine.platform}`,
      ...syncLines(report.folder, sync),
      ...report.absent.map((line) => `  Not measured: ${line}.`),
    ]),
    '',
    ...prose([
      `Time an agent waits for durability, per step: median of ${rounds} shuffled rounds, ${steps + 1} steps each.`,
      `× is the ratio to ${report.strategies[0]} in the same row, with its 95 % bootstrap interval.`,
    ]),
    ...report.workloads.flatMap((workload) => ['', ...workloadLines(workload, report.strategies)]),
    '',
    paint('bold', `What would change against ${reference}`),
    ...prose([
      ...conclusionLines(report),
      ...(report.strategies.includes('selective')
        ? [
            paint(
              'dim',
              '  selective was measured with every tool released: those calls run before they are on disk. All others keep every guarded write.',
            ),
          ]
        : []),
    ]),
  ].join('\n')
}

/** Lines of sentences, broken where the terminal ends; those that follow are indented. */
export function prose(lines: readonly string[]): string[] {
  return lines.map((line) => wrap(line, 2))
}

/** What may be concluded, in lines; deeper ones belong to the one above. */
export function conclusionLines(report: BenchReport): string[] {
  const steady = report.workloads.filter((workload) => workload.steady)
  return [
    ...steady.flatMap((workload) => adviceLines(workload)),
    ...(steady.length === report.workloads.length ? [] : noiseLines(report)),
  ]
}

/** What is known about syncs, in lines. */
export function syncLines(
  folder: string,
  { fileSystem, write, fdatasync, fsync, verdict, because }: SyncReport,
): string[] {
  const { type, mountPoint, source, device } = fileSystem
  const where = mountPoint === undefined ? '' : `, mounted on ${mountPoint} from ${source}`
  const kind =
    device === undefined
      ? ''
      : `, ${device.kind} device ${device.name}${device.rotational === true && device.kind === 'physical' ? ' (rotating)' : ''}`
  return [
    `  ${folder}: ${type}${where}${kind}`,
    `  append ${duration(write.median)}, fdatasync ${duration(fdatasync.median)}, fsync ${duration(fsync.median)} (95 % below ${duration(fsync.p95)})`,
    `  Does fsync reach the device? ${paint(verdict === 'plausible' ? 'bold' : 'yellow', VERDICTS[verdict])} ${capital(because)}.`,
  ]
}

const VERDICTS: Record<SyncReport['verdict'], string> = {
  no: 'No.',
  implausible: 'Hardly.',
  plausible: 'It may well.',
  unknown: 'Not known.',
}

function workloadLines({ title, noise, steady, cells }: BenchWorkload, strategies: readonly string[]): string[] {
  const settings = [...new Set(cells.map(settingName))]
  const rows = settings.map((setting) => [
    setting,
    ...strategies.map((strategy) =>
      cellText(cells.find((cell) => cell.strategy === strategy && settingName(cell) === setting)),
    ),
  ])
  const mark = steady ? '' : paint('yellow', ', too noisy to conclude')
  return [
    wrap(
      `${paint('bold', capital(title))} ${paint('dim', `(noise: the reference against itself ${ratioText(noise)}`)}${mark}${paint('dim', ')')}`,
      2,
    ),
    renderTable([{ title: 'setting' }, ...strategies.map((title) => ({ title, numeric: true }))], rows),
  ]
}

function cellText(cell: BenchCell | undefined): string {
  if (cell === undefined) return ''
  return cell.ratio === undefined ? duration(cell.waitedMs.median) : `×${ratioText(cell.ratio)}`
}

/** `0.65 (0.60-0.71)`. */
export function ratioText({ median, low, high }: Estimate): string {
  return `${median.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`
}

const BEST = 3

function adviceLines({ title, cells }: BenchWorkload): string[] {
  const safe = cells.filter((cell) => cell.strategy !== 'selective' && cell.finding === 'less')
  const best = safe.toSorted((a, b) => a.ratioToReference.median - b.ratioToReference.median).slice(0, BEST)
  const reference = cells.find((cell) => cell.finding === 'reference')
  if (best.length === 0) return [`  ${capital(title)}: nothing measured here waits less with any certainty.`]
  return [
    `  ${capital(title)}: ${duration(reference?.waitedMs.median ?? 0)} per step now.`,
    ...best.map(
      (cell) => `    ${nameOf(cell)}: ${duration(cell.waitedMs.median)}, ×${ratioText(cell.ratioToReference)}`,
    ),
  ]
}

function noiseLines({ workloads, rounds }: BenchReport): string[] {
  const noisy = workloads.filter((workload) => !workload.steady)
  return [
    paint('yellow', `  No conclusion for ${noisy.map(({ id }) => id).join(', ')}: this machine is too noisy.`),
    `  The reference was measured twice in each round, for the interval of its ratio to itself: ${NOISE_RULE}.`,
    `  Stop other work on the disk, or raise --rounds (now ${rounds}).`,
  ]
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
