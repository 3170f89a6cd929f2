/** Guarantees that a run shows, and whether each was seen to hold. */

/** One guarantee after the run. */
export interface Check {
  readonly id: string
  readonly ok: boolean
  /** The guarantee, as a sentence. */
  readonly title: string
  /** What was seen, in numbers. */
  readonly detail: string
}

/** Checks in the order they were made. */
export class Checklist {
  readonly #checks: Check[] = []

  /**
   * Note one guarantee.
   * @param parts - what must hold, by name; `detail` names the parts that did not.
   */
  add(id: string, title: string, parts: Readonly<Record<string, boolean>>, detail: string): void {
    const broken = Object.keys(parts).filter((part) => parts[part] !== true)
    this.#checks.push({
      id,
      ok: broken.length === 0,
      title,
      detail: broken.length === 0 ? detail : `not so: ${broken.join('; ')}`,
    })
  }

  get all(): readonly Check[] {
    return [...this.#checks]
  }

  /** Whether something was checked and all of it held. */
  get ok(): boolean {
    return this.#checks.length > 0 && this.#checks.every((check) => check.ok)
  }
}

/** Counts occasions of one rule; it holds when there were some and each kept it. */
export class Tally {
  seen = 0
  kept = 0

  note(kept: boolean): void {
    this.seen += 1
    if (kept) this.kept += 1
  }

  get ok(): boolean {
    return this.seen > 0 && this.kept === this.seen
  }

  /** For a person: `3 of 4`. */
  get text(): string {
    return `${this.kept} of ${this.seen}`
  }
}
