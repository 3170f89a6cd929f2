/**
 * Does `tune` predict what happens? `node test/bench/tune.ts`. Agents with real gaps are measured under four settings, in
 * shuffled rounds; between the rounds `tune` gets the logs of one of the settings and must say what share of a turn the
 * other three wait. Several runs of it, each against the rounds around it, for the load of a shared machine changes
 * within a minute; of a run that calls the machine too noisy nothing is to be expected.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Context } from '@deepseek-ai/cordis'
import Table from 'cli-table3'
import { loadOptionalParts, nameOf, pluginsOf, type Variant } from '../../src/cli/bench/variants.ts'
import { median, shuffled } from '../../src/cli/bench/statistics.ts'
import { WaitMeter } from '../../src/cli/bench/waits.ts'
import type { TuneReport } from '../../src/cli/tune/report.ts'
import { createHarness, createTool, ScriptedModel, textChunks, type ScriptedAnswer } from '../../src/testing/harness.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    cycles: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '45' },
    turns: { type: 'string', default: '10' },
  },
})
const ROUNDS = Number(values.rounds)
const CYCLES = Number(values.cycles)
const TURNS = Number(values.turns)
const TOLERANCE = 0.25
/** Known to whoever traces; a log does not tell it. */
const ASSEMBLY_MS = 3

const RECORDED: Variant = { strategy: 'stock', encoding: 'raw', delayMs: 200 }
const VARIANTS: readonly Variant[] = [
  RECORDED,
  { strategy: 'coalesced', encoding: 'raw', delayMs: 200 },
  { strategy: 'pipelined', encoding: 'raw', delayMs: 20 },
  { strategy: 'default', encoding: 'zstd', delayMs: 200 },
]

const parts = await loadOptionalParts()
const folder = mkdtempSync(join(tmpdir(), 'tune-bench-'))
const shares = new Map(VARIANTS.map((variant) => [variant, [] as number[]]))
try {
  const bin = fileURLToPath(new URL('../../src/cli/bin.ts', import.meta.url))
  const logs = join(folder, nameOf(RECORDED).replaceAll(/\W+/g, '-'))
  const reports: TuneReport[] = []
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    await rounds(cycle * ROUNDS, (cycle + 1) * ROUNDS)
    reports.push(runTune(bin, logs))
  }
  await rounds(CYCLES * ROUNDS, (CYCLES + 1) * ROUNDS)
  for (const [cycle, { ranked, replay, noise, steady, level }] of reports.entries()) {
    const range = `noise ${noise.low.toFixed(2)} to ${noise.high.toFixed(2)}`
    console.log(
      `tune run ${cycle + 1}: ${replay.seconds.toFixed(0)} s, ${replay.blocks} replays, ${range}, ${steady ? 'steady' : 'too noisy, by its own word'}, level from ${level.from}, pace ${level.pace?.toFixed(2)}`,
    )
    const table = new Table({
      head: ['share of a turn waited, %', 'measured around it, median (range)', 'predicted', 'off by'],
      style: { head: [], border: [] },
    })
    for (const variant of VARIANTS) {
      // The rounds before it and those after it.
      const own = (shares.get(variant) ?? []).slice(cycle * ROUNDS, (cycle + 2) * ROUNDS).toSorted((x, y) => x - y)
      const predicted = ranked.find((candidate) => nameOf(candidate) === nameOf(variant))?.share.median ?? Number.NaN
      const off = predicted / median(own) - 1
      const verdict = Math.abs(off) <= TOLERANCE ? 'within' : 'NOT within'
      table.push([
        nameOf(variant),
        `${percent(median(own))} (${percent(own[0])} to ${percent(own.at(-1))})`,
        percent(predicted),
        `${percent(off)} %, ${verdict} ${TOLERANCE * 100} %`,
      ])
    }
    console.log(table.toString())
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function runTune(bin: string, logs: string): TuneReport {
  const args = [bin, 'tune', logs, '--json', '--assembly', String(ASSEMBLY_MS), '--seconds', values.seconds]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as TuneReport
}

function percent(share = Number.NaN): string {
  return (share * 100).toFixed(1)
}

async function rounds(from: number, to: number): Promise<void> {
  for (let round = from; round < to; round += 1) {
    for (const variant of shuffled(VARIANTS)) {
      const share = await shareOf(variant, join(folder, nameOf(variant).replaceAll(/\W+/g, '-'), String(round)))
      shares.get(variant)?.push(share)
      console.error(
        `round ${round + 1} of ${(CYCLES + 1) * ROUNDS}: ${nameOf(variant)}: ${(share * 100).toFixed(1)} % waited`,
      )
    }
  }
}

/** One session under one setting, with the gaps of a small agent; the part of its turns that was waited. */
async function shareOf(variant: Variant, root: string): Promise<number> {
  const meter = new WaitMeter()
  let startedAt = 0
  let turnsMs = 0
  const clock = {
    name: 'clock',
    apply(ctx: Context) {
      ctx.on('agent/request', async (_payload, next) => {
        await pass(ASSEMBLY_MS)
        return next()
      })
      ctx.on('session/event', (_session, { type }) => {
        if (type === 'turn/start') startedAt = performance.now()
        if (type === 'turn/end') turnsMs += performance.now() - startedAt
      })
    },
  }
  const harness = await createHarness({
    root,
    compression: variant.encoding === 'raw' ? 'none' : 'zstd',
    writeBatchMaxDelayMs: variant.delayMs,
    model: new ScriptedModel(Array.from({ length: TURNS }, turn).flat()),
    tools: [
      createTool('read', () => pass(4).then(() => 'text '.repeat(400)), { parallel: true }),
      createTool('edit', () => pass(15)),
    ],
    plugins: [[meter.outer], ...pluginsOf(variant.strategy, parts), [meter.inner], [clock]],
  })
  const { agent } = await harness.createAgent()
  for (let index = 0; index < TURNS; index += 1) await harness.say(agent, 'please go on with the work')
  await harness.ctx.sessions.flush(agent.session)
  await harness.dispose()
  return meter.read().totalMs / turnsMs
}

/** Two parallel reads, an edit, four reads, an edit, an answer. */
function turn(): ScriptedAnswer[] {
  const reads = (count: number) =>
    Array.from({ length: count }, () => ({ name: 'read', args: { path: 'src/some/file.ts' } }))
  const calls = [reads(2), [{ name: 'edit', args: { text: 'x'.repeat(300) } }], reads(4), [{ name: 'edit' }]]
  return [
    ...calls.map((list): ScriptedAnswer => slow(list)),
    async function* answer() {
      await pass(10)
      yield* textChunks('It is done. '.repeat(20))
    },
  ]
}

/** A model takes its time. */
function slow(calls: readonly { readonly name: string; readonly args?: object }[]): ScriptedAnswer {
  return async function* answer() {
    await pass(12)
    for (const [index, { name, args = {} }] of calls.entries()) {
      const block = {
        type: 'tool-call',
        id: `${name}-${index}-${Math.random()}`,
        name,
        arguments: JSON.stringify(args),
      } as never
      yield { type: 'block-start', index, blockType: 'tool-call' }
      yield { type: 'block-end', index, block }
    }
    yield { type: 'finish', reason: { kind: 'tool-calls' } }
  }
}

/**
 * Let time pass and end anywhere within a millisecond, as an answer from a network does. A bare timer ends at the tick
 * of the clock that events are stamped by, and the gaps behind it are then all rounded the same way.
 */
async function pass(ms: number): Promise<void> {
  const end = performance.now() + ms + Math.random()
  await delay(ms)
  while (performance.now() < end);
}
