// Finds out whether a VMM that needs KVM is installed, in a version that its driver knows, and whether KVM runs guests: KVM counts only when it has booted the guests' own kernel.
import { access, constants } from 'node:fs/promises'
import { isOlder } from '../../compare-versions.ts'
import type { HostCommands } from '../../contracts/services.ts'
import { hasCode } from '../../errors/system-code.ts'
import { HostCommandFailed, HostCommandMissing } from '../../process/run.ts'
import type { HypervisorProbe } from '../hypervisor.ts'
import { KVM, kvmRefusal } from './command.ts'
import type { ProbeCache } from './probe-cache.ts'

const VERSION_TIMEOUT_MS = 10_000

/** What the host and the server provide for the probe. */
export interface KvmProbeOptions {
  readonly binary: string
  /** time for the kernel to boot, `ms` */
  readonly bootTimeoutMs: number
  readonly commands: HostCommands
  /** the guests' kernel, uncompressed, with its version */
  readonly kernel: () => Promise<{ readonly path: string, readonly version: string }>
  readonly cache: ProbeCache
  /** for tests without KVM; default: /dev/kvm */
  readonly kvm?: string
}

/** The part that depends on the VMM. */
export interface ProbedVmm {
  readonly name: string
  /** finds the version in what `--version` prints */
  readonly version: RegExp
  readonly oldest: string
  /** what a version before `oldest` lacks: `the oldest …` */
  readonly whyOldest: string
  /** Boots a kernel without a disk, which must end in its panic over that. Resolves to what it printed. */
  readonly boot: (kernel: string, options: KvmProbeOptions) => Promise<string>
}

/** A driver's `probe`. */
export async function probeOnKvm (vmm: ProbedVmm, options: KvmProbeOptions): Promise<HypervisorProbe> {
  const { name, oldest, whyOldest } = vmm
  const version = await findVersion(vmm, options)
  if (typeof version !== 'string') return version
  if (isOlder(version, oldest)) return { supported: false, version, reason: `${name} ${version} is older than ${oldest}, ${whyOldest}` }
  const problem = await kvmProblem(vmm, options, version)
  return problem === undefined ? { supported: true, version, acceleration: 'kvm' } : { supported: false, version, reason: `${name} runs VMs only with KVM, and ${problem}` }
}

async function findVersion ({ name, version }: ProbedVmm, { binary, commands }: KvmProbeOptions): Promise<string | HypervisorProbe> {
  try {
    const { stdout } = await commands.run(binary, ['--version'], { timeoutMs: VERSION_TIMEOUT_MS })
    return version.exec(stdout)?.[1] ?? { supported: false, reason: `${binary} does not say which version of ${name} it is` }
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return { supported: false, reason: error.message }
    throw error
  }
}

async function kvmProblem (vmm: ProbedVmm, options: KvmProbeOptions, version: string): Promise<string | undefined> {
  try {
    await access(options.kvm ?? KVM, constants.R_OK | constants.W_OK)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'this host has no /dev/kvm'
    if (hasCode(error, 'EACCES', 'EPERM')) return 'the server may not open /dev/kvm'
    throw error
  }
  const refusal = process.getuid?.() === 0 ? await kvmRefusal(options.kvm ?? KVM) : undefined
  if (refusal !== undefined) return refusal
  const kernel = await options.kernel()
  return options.cache.recall(`${vmm.name} ${version} ${kernel.version}`, () => bootProblem(vmm, kernel.path, options))
}

async function bootProblem ({ boot }: ProbedVmm, kernel: string, options: KvmProbeOptions): Promise<string | undefined> {
  try {
    // A processor that faults resets the machine, too: only the kernel's own words prove that it ran.
    return (await boot(kernel, options)).includes('Kernel panic') ? undefined : 'the guests\' kernel did not boot under KVM'
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return `the guests' kernel did not boot under KVM: ${error.message}`
    throw error
  }
}
