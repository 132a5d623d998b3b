// Finds out whether Firecracker is here, in a version that this driver knows, and whether KVM runs guests: that counts only when it has booted the guests' own kernel.
import { access, constants, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import type { HypervisorProbe } from '../../core/library/hypervisor.ts'
import { KVM, kvmRefusal, NO_CORE_DUMP } from '../../core/library/vmm/command.ts'
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/run.ts'

/** 1.16.0 leaves a guest's vsock dead after a restore, and with it the agent. */
export const OLDEST_VERSION = '1.16.1'

const VERSION_TIMEOUT_MS = 10_000

export interface ProbeOptions {
  readonly binary: string
  /** time for the kernel to boot, `ms` */
  readonly bootTimeoutMs: number
  readonly commands: HostCommands
  /** the guests' kernel, uncompressed, and what tells one from another */
  readonly kernel: () => Promise<{ readonly path: string, readonly version: string }>
  readonly cache: ProbeCache
  /** for tests without KVM; default: /dev/kvm */
  readonly kvm?: string
}

/** The driver's `probe`. */
export async function probeFirecracker (options: ProbeOptions): Promise<HypervisorProbe> {
  const version = await findVersion(options)
  if (typeof version !== 'string') return version
  if (isOlder(version, OLDEST_VERSION)) return { supported: false, version, reason: `Firecracker ${version} is older than ${OLDEST_VERSION}, the oldest that a guest can be reached in after a restore` }
  const problem = await kvmProblem(options, version)
  return problem === undefined ? { supported: true, version, acceleration: 'kvm' } : { supported: false, version, reason: `Firecracker runs VMs only with KVM, and ${problem}` }
}

async function findVersion ({ binary, commands }: ProbeOptions): Promise<string | HypervisorProbe> {
  try {
    const { stdout } = await commands.run(binary, ['--version'], { timeoutMs: VERSION_TIMEOUT_MS })
    const version = /^Firecracker v([0-9]+\.[0-9]+\.[0-9]+)/.exec(stdout)?.[1]
    return version ?? { supported: false, reason: `${binary} does not say which version of Firecracker it is` }
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return { supported: false, reason: error.message }
    throw error
  }
}

/** Whether a version is older than another, number by number. */
export function isOlder (version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number))
  for (const [index, number] of (b ?? []).entries()) {
    const other = a?.[index] ?? 0
    if (other !== number) return other < number
  }
  return false
}

async function kvmProblem (options: ProbeOptions, version: string): Promise<string | undefined> {
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
  return options.cache.recall(`firecracker ${version} ${kernel.version}`, () => bootToPanic(kernel.path, options))
}

/** Boots a kernel without a disk: it must reach its panic over that, and reset. Returns what went wrong instead. */
async function bootToPanic (kernel: string, { binary, bootTimeoutMs, commands }: ProbeOptions): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-firecracker-probe-'))
  try {
    const config = join(folder, 'config.json')
    await writeFile(config, JSON.stringify({
      'boot-source': { kernel_image_path: kernel, boot_args: 'console=ttyS0 quiet panic=-1 reboot=t' },
      'machine-config': { vcpu_count: 1, mem_size_mib: 128 },
      drives: []
    }))
    const { stdout } = await commands.run('prlimit', [...NO_CORE_DUMP, binary, '--no-api', '--enable-pci', '--level', 'Warn', '--config-file', config], { timeoutMs: bootTimeoutMs })
    // A processor that faults resets the machine as well: only the kernel's own words prove that it ran.
    return stdout.includes('Kernel panic') ? undefined : 'the guests\' kernel did not boot under KVM'
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return `the guests' kernel did not boot under KVM: ${error.message}`
    throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
