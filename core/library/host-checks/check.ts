// One check of a host, and its result.

export type Verdict = 'ok' | 'warning' | 'failed'

export interface Finding {
  readonly subject: string
  readonly verdict: Verdict
  readonly found: string
  /** what to do; absent when the check passed */
  readonly remedy?: string
}

export type Look = Omit<Finding, 'subject'>

/** Longer than each of a check's own steps may take (a tool has 5 s), so that only one that hangs is given up. */
const LONGEST_MS = 8000

/** When a check itself fails or hangs, that is a finding, too: the other checks go on. */
export async function check (subject: string, look: () => Promise<Look>, longestMs = LONGEST_MS): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => { reject(new Error(`it did not end within ${longestMs / 1000} s`)) }, longestMs)
  })
  try {
    return { subject, ...await Promise.race([look(), late]) }
  } catch (error) {
    return {
      subject,
      verdict: 'warning',
      found: `could not be looked at: ${(error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''}`,
      remedy: 'look at it by hand: the other checks do not depend on it'
    }
  } finally {
    clearTimeout(timer)
  }
}
