// `npm run bench -- NAME`: runs one benchmark; every figure is one line of JSON on standard output. Each folder beside this file that has a `main.ts` adds some.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { parseArguments, type BenchOptions, type Benchmarks } from './options.ts'

const FOLDER = new URL('./', import.meta.url)

async function findBenchmarks (): Promise<ReadonlyMap<string, (options: BenchOptions) => Promise<void>>> {
  const files = (await readdir(FOLDER)).sort().map((name) => new URL(`${name}/main.js`, FOLDER)).filter((file) => existsSync(file))
  const found = await Promise.all(files.map(async ({ href }) => (await import(href) as { readonly benchmarks: Benchmarks }).benchmarks))
  return new Map(found.flatMap((each) => Object.entries(each)))
}

const benchmarks = await findBenchmarks()

async function main (args: readonly string[]): Promise<number> {
  let options
  try {
    options = parseArguments(args, [...benchmarks.keys()])
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    console.error(`npm run bench -- NAME [--runs N] [--seconds N] [--before FOLDER], where NAME is one of: ${[...benchmarks.keys()].join(', ')}`)
    return 1
  }
  for (const name of options.names) await benchmarks.get(name)?.(options)
  return 0
}

// Exits explicitly, so that a stream that is still open cannot keep the process alive.
process.exit(await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.stack : String(error))
  return 1
}))
