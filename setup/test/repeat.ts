// For a build server: a file that failed while others ran beside it is run again by itself, so that a short problem of the host does not hide the results of the rest.
// This is never silent: both results are printed, and the summary names each file that was repeated.
import type { FileOutcome } from './count.ts'

/** With more failures than this something is broken, and a second run of everything would only hide it for longer. */
const MOST_REPEATED = 4

export interface Repeatable {
  readonly outcome: FileOutcome
  /** runs the file again; undefined when another run cannot end differently */
  readonly again?: () => Promise<FileOutcome>
}

export interface Repeated {
  /** the results that count: of a file that ran twice, the second */
  readonly outcomes: FileOutcome[]
  /** names of files that failed first and then passed */
  readonly unsteady: string[]
}

/** @param onOutcome called with each second outcome */
export async function repeatFailed (results: readonly Repeatable[], onOutcome: (outcome: FileOutcome) => void): Promise<Repeated> {
  const failed = results.filter(({ outcome }) => outcome.count.failed > 0).length
  const outcomes: FileOutcome[] = []
  const unsteady: string[] = []
  for (const { outcome, again } of results) {
    if (outcome.count.failed === 0 || again === undefined || failed > MOST_REPEATED) {
      outcomes.push(outcome)
      continue
    }
    const second = await again()
    onOutcome(second)
    outcomes.push(second)
    if (second.count.failed === 0) unsteady.push(second.name)
  }
  return { outcomes, unsteady }
}
