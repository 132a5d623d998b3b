// The table that `npm run conformance` prints: driver, case, how it was run, outcome. Pure.
import { casesOf, readResults } from '../../emulated-host/replay.ts'

export type How = 'real' | 'real, under KVM' | 'double'

export interface Row {
  readonly driver: string
  readonly name: string
  readonly how: How | 'unsupported'
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** why it is unsupported, or was not run */
  readonly reason?: string
}

/** What a suite's output says. A suite that was left out whole is one row, and so is one that said nothing. */
export function rowsOf (driver: string, how: How, tap: string): Row[] {
  const leftOut = leftOutFor(tap)
  if (leftOut !== undefined) return [{ driver, name: 'all', how, outcome: 'skipped', reason: leftOut }]
  return casesOf(readResults(tap)).map(({ path, outcome, reason }) => ({
    driver, name: path.join(' > ') || 'all', how: outcome === 'skipped' ? 'unsupported' : how, outcome, ...reason === undefined ? {} : { reason }
  }))
}

/** A plan of no assertions, with its reason. */
function leftOutFor (tap: string): string | undefined {
  return /^1\.\.0 # *(?:SKIP )?(.+)$/m.exec(tap)?.[1]
}

/** The drivers of which nothing was run with their own program. */
export function leftOut (rows: readonly Row[]): string[] {
  return rows.filter(({ name, how, outcome }) => name === 'all' && how !== 'double' && outcome === 'skipped').map(({ driver }) => driver)
}

export function lineOf ({ driver, name, how, outcome, reason }: Row): string {
  return [driver, name, how, outcome === 'skipped' && reason !== undefined ? `not run: ${reason}` : outcome].join(' | ')
}

/** One line on each way in which cases were run; a double's are never added to the real ones. */
export function totals (rows: readonly Row[]): string[] {
  const of = (how: Row['how'], outcome: Row['outcome']): number => rows.filter((row) => row.how === how && row.outcome === outcome).length
  const ways = [...new Set(rows.map(({ how }) => how))]
  return ways.map((how) => how === 'unsupported' ? `unsupported: ${of(how, 'skipped')}` : `${how}: ${of(how, 'passed')} passed, ${of(how, 'failed')} failed${of(how, 'skipped') === 0 ? '' : ', not run for want of the program'}`)
}
