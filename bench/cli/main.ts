// How long the command takes until its help is printed, beside Node with nothing to do.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageRoot } from '../../core/package-root.ts'
import { compare, print } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'

const execute = promisify(execFile)
const COMMAND = join(packageRoot, 'dist/cli/main.js')

async function msOf (args: readonly string[]): Promise<number> {
  const began = performance.now()
  await execute(process.execPath, [...args])
  return performance.now() - began
}

/** @param runs at least 20: with fewer, the median of something this short says little */
async function cli ({ runs }: BenchOptions): Promise<void> {
  const help = async (...args: readonly string[]): Promise<void> => {
    print(await compare({ name: `berth ${args.join(' ')}`, unit: 'ms', otherName: 'node -e 0', runs: Math.max(20, runs), ours: async () => await msOf([COMMAND, ...args]), other: async () => await msOf(['-e', '0']) }))
  }
  await help('--help')
  await help('run', '--help')
}

export const benchmarks: Benchmarks = { cli }
