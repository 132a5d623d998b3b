// Finds out whether QEMU is here and how it runs guest instructions. KVM counts only when it has booted the guests' own
// kernel: a /dev/kvm that opens may still not work.
import { access, constants } from 'node:fs/promises'
import type { HypervisorProbe } from '../../core/library/hypervisor.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/run.ts'
import { KVM, kvmRefusal, probing } from '../../core/library/vmm/command.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { ONE_BUS } from './board.ts'
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'

const VERSION_TIMEOUT_MS = 10_000

export interface ProbeOptions {
  /** QEMU's name of the board that VMs get */
  readonly board: string
  readonly binary: string
  readonly accelerator: 'auto' | 'kvm' | 'tcg'
  /** CPU model that VMs get under KVM */
  readonly kvmCpuModel: string
  /** time for the kernel to boot under KVM */
  readonly bootTimeoutMs: number
  readonly commands: HostCommands
  /** the guests' kernel, uncompressed, and its version */
  readonly kernel: () => Promise<{ readonly path: string, readonly version: string }>
  readonly cache: ProbeCache
  /** for tests without KVM; default: /dev/kvm */
  readonly kvm?: string
}

/** The driver's `probe`. */
export async function probeQemu (options: ProbeOptions): Promise<HypervisorProbe> {
  const version = await findVersion(options)
  if (typeof version !== 'string') return version
  if (!await hasBoard(options)) return { supported: false, version, reason: `QEMU ${version} has no board ${options.board}` }
  if (options.accelerator === 'tcg') {
    return { supported: true, version, acceleration: 'tcg', reason: 'the configuration asks for emulation (accelerator: tcg)' }
  }
  const problem = await kvmProblem(options, version)
  if (problem === undefined) return { supported: true, version, acceleration: 'kvm' }
  if (options.accelerator === 'kvm') return { supported: false, version, reason: `the configuration asks for KVM, and ${problem}` }
  return { supported: true, version, acceleration: 'tcg', reason: problem }
}

async function findVersion ({ binary, commands }: ProbeOptions): Promise<string | HypervisorProbe> {
  try {
    const { stdout } = await commands.run(binary, ['--version'], { timeoutMs: VERSION_TIMEOUT_MS })
    return /version ([0-9]+(?:\.[0-9]+)*)/.exec(stdout)?.[1] ?? 'unknown'
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) return { supported: false, reason: error.message }
    throw error
  }
}

/** Distributions may leave boards out. */
async function hasBoard ({ binary, board, commands }: ProbeOptions): Promise<boolean> {
  const { stdout } = await commands.run(binary, ['-machine', 'help'], { timeoutMs: VERSION_TIMEOUT_MS })
  return stdout.split('\n').some((line) => line.startsWith(`${board} `))
}

/** Why VMs cannot run under KVM; undefined when they can. */
async function kvmProblem (options: ProbeOptions, version: string): Promise<string | undefined> {
  const { kvm = KVM } = options
  try {
    await access(kvm, constants.R_OK | constants.W_OK)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'this host has no /dev/kvm'
    if (hasCode(error, 'EACCES', 'EPERM')) return 'the server may not open /dev/kvm'
    throw error
  }
  // An explicit `kvm` is for operators whose VMs all run as the server's own user.
  const refusal = options.accelerator === 'auto' && process.getuid?.() === 0 ? await kvmRefusal(kvm) : undefined
  if (refusal !== undefined) return refusal
  const kernel = await options.kernel()
  return options.cache.recall(`${version} ${options.kvmCpuModel} ${kernel.version}`, () => bootUnderKvm(kernel.path, options))
}

type BootOptions = Pick<ProbeOptions, 'binary' | 'kvmCpuModel' | 'bootTimeoutMs' | 'commands'>

/** Boots a kernel without a disk under KVM: it must panic over that, and reset. Returns the failure otherwise. */
export async function bootUnderKvm (kernel: string, options: BootOptions): Promise<string | undefined> {
  return bootToPanic(kernel, ['-accel', 'kvm', '-cpu', options.kvmCpuModel], options)
}

/** The same under any accelerator. */
export async function bootToPanic (kernel: string, accelerator: readonly string[], options: Omit<BootOptions, 'kvmCpuModel'>): Promise<string | undefined> {
  const { binary, bootTimeoutMs, commands } = options
  const args = [
    '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-machine', 'q35,hpet=off,usb=off,smbus=off,sata=off',
    ...accelerator, '-m', '128M', '-serial', 'stdio', '-kernel', kernel, '-append', `console=ttyS0 quiet panic=-1 ${ONE_BUS}`
  ]
  try {
    const { stdout } = await commands.run('setpriv', probing(binary, args), { timeoutMs: bootTimeoutMs })
    // A processor that faults resets the machine as well: only the kernel's own output proves that it ran.
    return stdout.includes('Kernel panic') ? undefined : '/dev/kvm is present, but the kernel did not boot under KVM'
  } catch (error) {
    if (!(error instanceof HostCommandFailed)) throw error
    if (error.failure.reason === 'timeout') return `/dev/kvm is present, but the kernel did not boot under KVM within ${bootTimeoutMs} ms`
    return `/dev/kvm is present, but QEMU failed under KVM: ${error.failure.stderr}`
  }
}
