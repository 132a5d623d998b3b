// Prints the results of a test run.
import type { Failure, FileOutcome, Skip, TestCount } from './count.ts'
import { withSourcePlaces } from './places.ts'

export interface Total { readonly count: TestCount, readonly failures: Failure[], readonly skips: Skip[], readonly outcomes: FileOutcome[] }

export function newTotal (): Total {
  return { count: { passed: 0, failed: 0, skipped: 0 }, failures: [], skips: [], outcomes: [] }
}

export function add (total: Total, outcome: FileOutcome): void {
  total.count.passed += outcome.count.passed
  total.count.failed += outcome.count.failed
  total.count.skipped += outcome.count.skipped
  total.failures.push(...outcome.failures)
  total.skips.push(...outcome.skips)
  total.outcomes.push(outcome)
}

/** A failure of the run itself. */
export function fail (total: Total, name: string): void {
  total.count.failed++
  total.failures.push({ name, detail: '' })
}

/** One line for a file; for a failed file also its failures, and the end of its other output. */
export function printFile (outcome: FileOutcome): void {
  const { passed, failed, skipped } = outcome.count
  const counts = [`${passed} passed`, ...(failed > 0 ? [`${failed} failed`] : []), ...(skipped > 0 ? [`${skipped} skipped`] : [])].join(', ')
  console.log(`${failed > 0 ? 'FAIL' : 'ok  '} ${outcome.name} (${counts}) ${((outcome.durationMs ?? 0) / 1000).toFixed(1)} s`)
  if (failed === 0) return
  for (const failure of outcome.failures) console.log(indent(`not ok: ${failure.name}\n${indent(withSourcePlaces(failure.detail))}`))
  if (outcome.said.trim() !== '') console.log(indent(`it printed:\n${indent(withSourcePlaces(outcome.said.trimEnd()))}`))
}

/**
 * The last line is the count.
 * @param unsteady files that failed, and passed when they were run again
 */
export function printSummary (total: Total, unsteady: readonly string[]): void {
  console.log('')
  for (const name of unsteady) console.log(`unsteady: ${name}: it failed beside others, and passed when it was run again by itself`)
  for (const skip of total.skips) console.log(`skipped: ${skip.name}: ${skip.reason}`)
  for (const failure of total.failures) console.log(`failed: ${failure.name}`)
  const { passed, failed, skipped } = total.count
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
}

function indent (text: string): string {
  return text.split('\n').map(line => `    ${line}`).join('\n')
}
