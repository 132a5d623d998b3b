// The arguments of `npm run bench --`: the names of benchmarks, how often each measures, which VMM runs their VMs, and under what.
import { parseArgs } from 'node:util'

const ACCELERATORS = ['auto', 'tcg', 'kvm'] as const

/** As in the configuration of QEMU's driver: `auto` is KVM where it boots the guests' kernel, else emulation. */
export type Accelerator = typeof ACCELERATORS[number]

export const HYPERVISORS = ['qemu', 'firecracker', 'cloud-hypervisor'] as const

export type Hypervisor = typeof HYPERVISORS[number]

/** What runs the VMs of a benchmark. */
export type Under = Pick<BenchOptions, 'accelerator' | 'hypervisor'>

export interface BenchOptions {
  /** the number of measurements for each figure */
  readonly runs: number
  /** how long a benchmark watches what must not grow */
  readonly seconds: number
  /** folder of another commit's checkout that is built, for comparisons with it */
  readonly before?: string
  /** default: `auto` */
  readonly accelerator: Accelerator
  /** default: `qemu`; another one runs under KVM alone */
  readonly hypervisor: Hypervisor
}

/** Benchmarks by their names on the command line. */
export type Benchmarks = Readonly<Record<string, (options: BenchOptions) => Promise<void>>>

/** What each folder's `main.ts` exports. */
export interface BenchmarkFile {
  readonly benchmarks: Benchmarks
  /** names of those that take an accelerator */
  readonly accelerated?: readonly string[]
}

export interface Arguments extends BenchOptions { readonly names: readonly string[] }

const DEFAULT_RUNS = 10
const DEFAULT_SECONDS = 20

/** Throws a sentence about invalid arguments. @param accelerated names of the benchmarks that take an accelerator */
export function parseArguments (args: readonly string[], known: readonly string[], accelerated: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      runs: { type: 'string', default: String(DEFAULT_RUNS) },
      seconds: { type: 'string', default: String(DEFAULT_SECONDS) },
      before: { type: 'string' },
      accelerator: { type: 'string', default: 'auto' },
      hypervisor: { type: 'string', default: 'qemu' }
    }
  })
  const runs = Number(values.runs)
  const seconds = Number(values.seconds)
  if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs ${values.runs}: a whole number from 1 on is wanted`)
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error(`--seconds ${values.seconds}: a whole number from 1 on is wanted`)
  const unknown = positionals.find(name => !known.includes(name))
  if (unknown !== undefined) throw new Error(`there is no benchmark ${unknown}`)
  if (positionals.length === 0) throw new Error('no benchmark is named')
  const accelerator = acceleratorOf(values.accelerator, positionals.filter((name) => !accelerated.includes(name)))
  const hypervisor = hypervisorOf(values.hypervisor, accelerator)
  return { names: positionals, runs, seconds, accelerator, hypervisor, ...values.before === undefined ? {} : { before: values.before } }
}

/** @param without the named benchmarks that take none */
function acceleratorOf (word: string, [without]: readonly string[]): Accelerator {
  const found = ACCELERATORS.find((each) => each === word)
  if (found === undefined) throw new Error(`--accelerator ${word}: one of ${ACCELERATORS.join(', ')} is wanted`)
  if (found !== 'auto' && without !== undefined) throw new Error(`--accelerator ${found}: the benchmark ${without} takes none`)
  return found
}

function hypervisorOf (word: string, accelerator: Accelerator): Hypervisor {
  const found = HYPERVISORS.find((each) => each === word)
  if (found === undefined) throw new Error(`--hypervisor ${word}: one of ${HYPERVISORS.join(', ')} is wanted`)
  if (found !== 'qemu' && accelerator !== 'kvm') throw new Error(`--hypervisor ${found}: it runs under KVM alone, so --accelerator kvm is wanted`)
  return found
}
