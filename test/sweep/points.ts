/** The places where a process under test may die: it counts what it passes and kills itself at one of them. */
import { writeSync } from 'node:fs'

/** Where to die: at the n-th pass of one point, or at the n-th point of all, a moment later if asked. */
export interface Target {
  /** Absent: any point counts. */
  readonly point?: string
  /** From 1. */
  readonly hit: number
  /** Let this much time pass after the point, in milliseconds. */
  readonly laterMs?: number
}

const passed = new Map<string, number>()
let total = 0
let target: Target | undefined

/** Die at `where`, from now on. */
export function aim(where: Target | undefined): void {
  target = where
}

/** Points passed so far, with how often. */
export function passes(): Record<string, number> {
  return Object.fromEntries(passed)
}

/** Pass a point, and say whether this is the place to die: for those who have something to leave half done first. */
export function meets(point: string): boolean {
  const count = (passed.get(point) ?? 0) + 1
  passed.set(point, count)
  total += 1
  if (target === undefined) return false
  return target.point === undefined ? total === target.hit : target.point === point && count === target.hit
}

/** Pass a point; does not return when this is the place to die. */
export function reach(point: string): void {
  if (!meets(point)) return
  if (target?.laterMs === undefined) die(point)
  else setTimeout(() => die(`after ${point}`), target.laterMs)
}

/** SIGKILL to this very process, with nothing flushed, closed or awaited; synchronous, so nothing happens in between. */
export function die(point: string): never {
  writeSync(1, `dies ${point}\n`)
  process.kill(process.pid, 'SIGKILL')
  // The signal is delivered before the call returns; this line is for the type checker.
  for (;;);
}
