// `npm run bench -- NAME`: runs one benchmark; every figure is one line of JSON on standard output.
import { api } from './api/main.ts'
import { build } from './build/main.ts'
import { cli } from './cli/main.ts'
import { createBench } from './create/main.ts'
import { density } from './density/main.ts'
import { egress, egressWorkers } from './egress/main.ts'
import { forkBench } from './fork/main.ts'
import { headersBench } from './headers/main.ts'
import { ingress } from './ingress/main.ts'
import { libvirt } from './libvirt/main.ts'
import { lists } from './lists/main.ts'
import { network } from './network/main.ts'
import { parseArguments, type BenchOptions } from './options.ts'
import { pull } from './pull/main.ts'
import { standby } from './standby/main.ts'

const benchmarks: ReadonlyMap<string, (options: BenchOptions) => Promise<void>> = new Map([
  ['api', api], ['build', build], ['cli', cli], ['create', createBench], ['density', density], ['egress', egress], ['egress-workers', egressWorkers], ['fork', forkBench], ['headers', headersBench], ['ingress', ingress], ['libvirt', libvirt], ['lists', lists], ['network', network], ['pull', pull], ['standby', standby]
])

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

// Ends the process by name, so that a stream that is still open cannot hold it.
process.exit(await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.stack : String(error))
  return 1
}))
