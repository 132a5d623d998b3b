// `npm run bench -- NAME`: runs one benchmark; every figure is one line of JSON on standard output.
import { api } from './api/main.ts'
import { createBench } from './create/main.ts'
import { pull } from './pull/main.ts'

const benchmarks: ReadonlyMap<string, () => Promise<void>> = new Map([['api', api], ['create', createBench], ['pull', pull]])

async function main (names: readonly string[]): Promise<number> {
  const unknown = names.filter(name => !benchmarks.has(name))
  if (names.length === 0 || unknown.length > 0) {
    console.error(`npm run bench -- NAME, where NAME is one of: ${[...benchmarks.keys()].join(', ')}`)
    return 1
  }
  for (const name of names) await benchmarks.get(name)?.()
  return 0
}

// Ends the process by name, so that a stream that is still open cannot hold it.
process.exit(await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.stack : String(error))
  return 1
}))
