// `npm run bench -- NAME`: runs one benchmark; every figure is one line of JSON on standard output. Each folder beside this file that has a `main.ts` adds some.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isEmulatedHost } from '../test/emulated-host/slow.ts'
import { placeOf } from './accelerator.ts'
import { measuredOn } from './harness.ts'
import { HYPERVISORS, parseArguments, type BenchmarkFile } from './options.ts'

const FOLDER = new URL('./', import.meta.url)

async function findBenchmarks (): Promise<Required<BenchmarkFile>> {
  const files = (await readdir(FOLDER)).sort().map((name) => new URL(`${name}/main.js`, FOLDER)).filter((file) => existsSync(file))
  const found = await Promise.all(files.map(async ({ href }) => await import(href) as BenchmarkFile))
  return { benchmarks: Object.fromEntries(found.flatMap(({ benchmarks }) => Object.entries(benchmarks))), accelerated: found.flatMap(({ accelerated = [] }) => accelerated) }
}

const { benchmarks, accelerated } = await findBenchmarks()
const names = Object.keys(benchmarks)

async function main (args: readonly string[]): Promise<number> {
  let options
  try {
    options = parseArguments(args, names, accelerated)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    console.error(`npm run bench -- NAME [--runs N] [--seconds N] [--before FOLDER] [--accelerator auto|tcg|kvm] [--hypervisor ${HYPERVISORS.join('|')}], where NAME is one of: ${names.join(', ')}; an accelerator is for ${accelerated.join(', ')}`)
    return 1
  }
  if (options.accelerator === 'kvm' && !isEmulatedHost) {
    const { benchOnEmulatedHost, kvmHere } = await import('./emulated-host.ts')
    if (!await kvmHere()) return await benchOnEmulatedHost(args)
  }
  measuredOn(placeOf(options))
  for (const name of options.names) await benchmarks[name]?.(options)
  return 0
}

// Exits explicitly, so that a stream that is still open cannot keep the process alive.
process.exit(await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.stack : String(error))
  return 1
}))
