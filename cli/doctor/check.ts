// One check of the doctor, and its result.

export type Verdict = 'ok' | 'warning' | 'failed'

export interface Finding {
  readonly subject: string
  readonly verdict: Verdict
  readonly found: string
  /** what to do; absent when the check passed */
  readonly remedy?: string
}

export type Look = Omit<Finding, 'subject'>

/** When a check itself fails, that is a finding, too: the other checks go on. */
export async function check (subject: string, look: () => Promise<Look>): Promise<Finding> {
  try {
    return { subject, ...await look() }
  } catch (error) {
    return { subject, verdict: 'warning', found: `could not be looked at: ${(error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''}` }
  }
}
