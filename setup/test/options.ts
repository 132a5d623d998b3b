// The command line of the test runner.
import { parseArgs } from 'node:util'
import { tiers, type Tier } from './tiers.ts'

export interface TestOptions {
  readonly tiers: readonly Tier[]
  /** words of which a test file's path must contain one; none: every file */
  readonly filters: readonly string[]
  /** whether the durations of this run are recorded for the order of later runs */
  readonly record: boolean
  /** whether a file that failed is run once more by itself: for a build server */
  readonly repeat: boolean
  /** whether the processor time of each file is measured, and printed at the end */
  readonly times: boolean
  /** whether of the long tier only the share is run that this commit has */
  readonly share: boolean
  /** after which no further file is begun; those are counted as skipped, and named */
  readonly minutes: number | undefined
}

/** `[--long [--share]] [--record] [--repeat] [--times] [--minutes N] [WORD...]`: the fast tier; with `--long` the long one; with words the files of both tiers that match. Throws on an unknown option. */
export function parseOptions (args: readonly string[]): TestOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      long: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      repeat: { type: 'boolean', default: false },
      times: { type: 'boolean', default: false },
      share: { type: 'boolean', default: false },
      minutes: { type: 'string' }
    },
    allowPositionals: true
  })
  const chosen: readonly Tier[] = values.long ? ['long'] : positionals.length > 0 ? tiers : ['fast']
  if (values.minutes !== undefined && !/^\d{1,4}$/.test(values.minutes)) throw new Error(`--minutes: a whole number, and not ${values.minutes}`)
  if (values.share && (!values.long || positionals.length > 0)) throw new Error('--share: of the long tier, which is --long without words')
  const { record, repeat, times, share, minutes } = values
  return { tiers: chosen, filters: positionals, record, repeat, times, share, minutes: minutes === undefined ? undefined : Number(minutes) }
}
