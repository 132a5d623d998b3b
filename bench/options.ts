// What stands behind `npm run bench --`: the names of benchmarks, and how often each measures.
import { parseArgs } from 'node:util'

export interface BenchOptions {
  /** how many measurements each figure is made of */
  readonly runs: number
  /** how long a benchmark watches what must not grow */
  readonly seconds: number
  /** folder of another commit's checkout that is built, for what compares with one */
  readonly before?: string
}

/** What `main.ts` of each folder exports, by the names that the command line knows. */
export type Benchmarks = Readonly<Record<string, (options: BenchOptions) => Promise<void>>>

export interface Arguments extends BenchOptions { readonly names: readonly string[] }

const DEFAULT_RUNS = 10
const DEFAULT_SECONDS = 20

/** Throws what is wrong with the arguments. */
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
