/** What must hold after anything happened on a stage. */
import { decodeStorageRecord } from '@deepseek-ai/dsh-session'
import type { Stage } from './stage.ts'

/** Everything that is checked, once nothing is open any more. */
export async function checkAll(stage: Stage, options: { readonly prompt: boolean }): Promise<void> {
  if (!(await stage.quiet())) {
    const left = stage.harness.ctx.checkpoints.open().map(({ boundary }) => boundary)
    stage.findings.add('open', `barriers were left open after the turn: ${left.join(', ')}`)
  }
  checkRecords(stage, options)
  checkTranscript(stage)
  await checkLog(stage)
}

/** What the records of the barriers say about the strategy. */
function checkRecords(stage: Stage, options: { readonly prompt: boolean }): void {
  const { findings, records, subject } = stage
  let slow = 0
  for (const record of records) {
    const where = `\`${record.boundary}\`` + (record.toolName === undefined ? '' : ` of tool "${record.toolName}"`)
    switch (record.overruled) {
      case 'threw':
        findings.add('threw in decide', `decide threw at ${where}; the policy flushed instead. decide must not throw`)
        break
      case 'invalid':
        findings.add('invalid', `decide answered no decision at ${where}; the policy flushed instead`)
        break
      case 'guarded':
        findings.add(
          'overruled',
          `decide asked not to wait at ${where} although ${record.pendingEvents} event(s) were not known to be durable; the ` +
            'policy flushed instead. Answer "flush" there, or test it with policy: { allowUnguarded: true } and mayRelease',
        )
        break
      case undefined:
        break
    }
    if (record.unguarded && !subject.mayRelease.has(record.toolName ?? '')) {
      findings.add(
        'unguarded',
        `the strategy released ${where} without a durable log: it answered "${record.decision}"` +
          (record.reason === undefined ? '' : ` (${record.reason})`),
      )
    }
    // Without the flush itself, which a busy machine may stretch at will.
    const heldMs = record.durationMs - (record.flushMs ?? 0)
    if (!options.prompt || heldMs <= subject.maxWaitMs) continue
    slow += 1
    if (slow < MIN_SLOW) continue
    findings.add(
      'slow',
      `the agent was held for ${Math.round(heldMs)} ms at ${where} besides the flush itself ` +
        `(maxWaitMs is ${subject.maxWaitMs}): the strategy delays or never settles`,
    )
  }
}

/** One long wait may be a stall of the machine; a strategy that delays does it again. */
const MIN_SLOW = 2

/** Each recorded call has one result, before its step ends, and what ran was recorded. */
function checkTranscript(stage: Stage): void {
  const { findings } = stage
  const open = new Set<string>()
  const called = new Set<string>()
  for (const { type, data } of stage.events()) {
    if (type === 'tool/call') {
      open.add(String(data['callId']))
      called.add(String(data['callId']))
    }
    if (type === 'tool/result') {
      const callId = callIdOf(data)
      if (!open.delete(callId)) findings.add('results', `call ${callId} has a result without an open call`)
    }
    if (type === 'step/end' && open.size > 0) {
      findings.add('unanswered', `a step ended while call(s) ${[...open].join(', ')} had no result`)
      open.clear()
    }
  }
  for (const callId of stage.ran) {
    if (!called.has(callId))
      findings.add('unrecorded', `the body of call ${callId} ran, but the session has no such call`)
  }
  if (new Set(stage.ran).size !== stage.ran.length) findings.add('twice', 'a tool body ran twice for one call')
}

/** After everything was flushed, the file holds each event once and in order. */
async function checkLog(stage: Stage): Promise<void> {
  const { findings, agent, harness } = stage
  await harness.ctx.sessions.flush(agent.session)
  const seqs = seqsOf(await stage.log())
  const broken = seqs.findIndex((seq, index) => seq !== index)
  if (broken !== -1)
    findings.add('log', `the log on disk is not contiguous: event ${broken} is followed by ${seqs[broken]}`)
  if (seqs.length !== agent.session.seq) {
    findings.add('lost', `the log on disk holds ${seqs.length} events after a flush, the session ${agent.session.seq}`)
  }
}

/** The events of a log file, rows of packed chunks included. */
export function eventsOf(
  lines: readonly string[],
): readonly { type: string; seq: number; data: Record<string, unknown> }[] {
  return lines.slice(1).flatMap((line) => decodeStorageRecord(JSON.parse(line)) as never[])
}

/** `seq` of every event in a log file. */
function seqsOf(lines: readonly string[]): number[] {
  return eventsOf(lines).map(({ seq }) => seq)
}

/** The call that a `tool/result` answers. */
export function callIdOf(data: Record<string, unknown>): string {
  const message = data['message'] as { content?: readonly { toolCallId?: unknown }[] } | undefined
  return String(message?.content?.[0]?.toolCallId ?? data['callId'])
}
