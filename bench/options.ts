// The arguments of `npm run bench --`: the names of benchmarks, and how often each measures.
import { parseArgs } from 'node:util'

export interface BenchOptions {
  /** the number of measurements for each figure */
  readonly runs: number
  /** how long a benchmark watches what must not grow */
  readonly seconds: number
  /** folder of another commit's checkout that is built, for comparisons with it */
  readonly before?: string
}

/** The export of each folder's `main.ts`: its benchmarks by their names on the command line. */
export type Benchmarks = Readonly<Record<string, (options: BenchOptions) => Promise<void>>>

export interface Arguments extends BenchOptions { readonly names: readonly string[] }

const DEFAULT_RUNS = 10
const DEFAULT_SECONDS = 20

/** Throws a sentence about invalid arguments. */
export function parseArguments (args: readonly string[], known: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: { runs: { type: 'string', default: String(DEFAULT_RUNS) }, seconds: { type: 'string', default: String(DEFAULT_SECONDS) }, before: { type: 'string' } } })
  const runs = Number(values.runs)
  const seconds = Number(values.seconds)
  if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs ${values.runs}: a whole number from 1 on is wanted`)
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error(`--seconds ${values.seconds}: a whole number from 1 on is wanted`)
  const unknown = positionals.find(name => !known.includes(name))
  if (unknown !== undefined) throw new Error(`there is no benchmark ${unknown}`)
  if (positionals.length === 0) throw new Error('no benchmark is named')
  return { names: positionals, runs, seconds, ...values.before === undefined ? {} : { before: values.before } }
}
