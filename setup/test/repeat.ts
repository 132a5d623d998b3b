// For a build server: one file that failed while others ran beside it is run again by itself, so that a host's bad minute does not hide what the rest of the run says.
// Nothing of it is silent: both results are printed, and the summary names each file that needed it.
import type { FileOutcome } from './count.ts'

/** With more failures than this something is broken, and a second run of everything would only hide for how long. */
const MOST_REPEATED = 4

export interface Repeatable {
  readonly outcome: FileOutcome
  /** runs the file again; undefined for what luck has no part in */
  readonly again?: () => Promise<FileOutcome>
}

export interface Repeated {
  /** those that count: of a file that ran twice the second */
  readonly outcomes: FileOutcome[]
  /** names of files that failed first and then passed */
  readonly unsteady: string[]
}

/** @param onOutcome hears of each second outcome as it comes */
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
