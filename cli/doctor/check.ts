// One thing that the doctor looks at, and what it found.

export type Verdict = 'ok' | 'warning' | 'failed'

export interface Finding {
  readonly subject: string
  readonly verdict: Verdict
  readonly found: string
  /** what to do; absent when all is well */
  readonly remedy?: string
}

export type Look = Omit<Finding, 'subject'>

/** A fault of a check is a finding, too: the others go on. */
export async function check (subject: string, look: () => Promise<Look>): Promise<Finding> {
  try {
    return { subject, ...await look() }
  } catch (error) {
    return { subject, verdict: 'warning', found: `could not be looked at: ${(error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''}` }
  }
}
