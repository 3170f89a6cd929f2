/** What a test needs from the machine: absent, it skips with a line; under the switch of the CI it may not. */

/** Set to 1 where nothing may be skipped. */
const SWITCH = 'DSH_CHECKPOINT_REQUIRE_ALL'
const LINE = 300

/**
 * Whether a heavy part of a test is there. Use as `describe.skipIf(!requirement('promtool', found))`.
 * @param what - the part, in words; add why it is missing.
 * @param present - whether it was found.
 * @throws when it is absent and {@link SWITCH} is 1.
 */
export function requirement(what: string, present: boolean): boolean {
  if (present) return true
  if (process.env[SWITCH] === '1') throw new Error(`${SWITCH}=1, and this is missing: ${what}`)
  console.log(`skipped, missing: ${what.replace(/\s+/g, ' ').slice(0, LINE)}`)
  return false
}
