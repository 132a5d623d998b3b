// A host for tests that this machine cannot be: a machine under TCG, with a processor that has SVM (so KVM works in it) and, when asked for, an IOMMU. It boots Debian's standard
// kernel and has this host's own programs, read-only, and this package. README.md says what it can do and what it cannot.
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { cpioArchive } from '../../plugins/guest/system/cpio.ts'
import { initrdEntries } from './initrd.ts'
import { hostKernel } from './kernel.ts'
import { imageOfDependencies, imageOfPackage } from './package-image.ts'

/** A kernel with `sched_autogroup_enabled` compares sessions, by a value of their own, and programs by `nice` within one session alone: sched(7). */
const FIRST = ['sh', '-c', '{ echo -10 > /proc/self/autogroup; } 2> /dev/null; exec nice -n -10 "$@"', 'sh']
const STEP_TIMEOUT_MS = 120_000
/**
 * Without the promise that `rep stosb` is fast, since it is emulated byte by byte: starting a program takes a third less of the processor time. Without page tables of five levels, since each address of a VM is looked up in
 * the VM's and, for each level of those, in the host's.
 */
const PROCESSOR = 'max,-erms,-la57'
const IOMMU = ['-device', 'intel-iommu,intremap=on,caching-mode=on']
/** The last words of a kernel that dies, and of one that is about to (an oops is made a panic below). */
const DEATH = /^.*(?:Kernel panic - not syncing|corrupted stack end|stack guard page was hit|general protection fault|Unable to handle|BUG: ).*$/m

export interface HostOptions {
  /** the test's own; what the machine writes to `/run/share` is found in its `share` */
  readonly folder: string
  /** a folder that the machine finds at `/run/data`; what it changes there it changes for itself. Absent: an empty one */
  readonly data?: string
  /** lines of shell, run by root in the machine; it powers off afterwards */
  readonly script: string
  /** further arguments of QEMU: cards */
  readonly devices?: readonly string[]
  /** Two make one VM faster. QEMU's emulation of SVM kills the machine's kernel now and then when there are several VMs on more than one. Default: 2 */
  readonly processors?: number
  /** default: 2048 */
  readonly memoryMib?: number
  /** whether it has a processor before all else, where that is allowed. Its clock is this host's, so limits of time there come too early while it waits for one. Default: no */
  readonly isFirst?: boolean
  /** whether devices can be given to VMs; KVM needs none. Default: no */
  readonly iommu?: boolean
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface HostRun {
  /** how QEMU ended */
  readonly ended: string
  /** what the machine's console showed */
  readonly console: string
  /** the line of the console by which the machine's own kernel died, or the emulator's end by a signal: no failure of what ran there. Undefined: it lived to its end */
  readonly death?: string
}

/** Boots the machine and runs the script in it. Resolves when it is off, or was ended after its time. */
export async function runOnHost (options: HostOptions): Promise<HostRun> {
  const { folder, data, script, devices = [], processors = 2, memoryMib = 2048, iommu = false, isFirst = false, timeoutMs, signal } = options
  const commands = createHostCommands()
  const share = join(folder, 'share')
  await mkdir(share, { recursive: true })
  const { image, modules } = await hostKernel(commands)
  await writeFile(join(share, 'script.sh'), script)
  await chmod(join(share, 'script.sh'), 0o755)
  const packageImage = join(folder, 'package.erofs')
  await imageOfPackage(commands, join(folder, 'package'), packageImage)
  const dataImage = join(folder, 'data.erofs')
  const contents = data ?? join(folder, 'no-data')
  await mkdir(contents, { recursive: true })
  await commands.run('mkfs.erofs', ['--quiet', dataImage, contents], { timeoutMs: STEP_TIMEOUT_MS })
  const initrd = join(folder, 'initrd')
  await writeFile(initrd, cpioArchive(await initrdEntries(modules, folder)))
  const console = join(folder, 'console')
  const drive = (file: string): string[] => ['-drive', `file=${file},format=raw,if=virtio,readonly=on`]
  const shared = (path: string, tag: string, how = ''): string[] => ['-virtfs', `local,path=${path},${how}security_model=none,mount_tag=${tag},multidevs=remap`]
  // It ends with this process, however that ends.
  const qemu = commands.run('setpriv', [
    '--pdeathsig', 'KILL', ...isFirst ? FIRST : [], 'qemu-system-x86_64',
    '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-serial', `file:${console}`,
    '-machine', 'q35,kernel-irqchip=split', '-accel', 'tcg,thread=multi,tb-size=512', '-cpu', PROCESSOR, '-smp', String(processors), '-m', `${memoryMib}M`,
    ...iommu ? IOMMU : [],
    // On a busy host the kernel sees too few interrupts of its timer while it counts them, and takes it for broken.
    '-kernel', image, '-initrd', initrd, '-append', `console=ttyS0 quiet ${iommu ? 'intel_iommu=on ' : ''}panic=-1 oops=panic mitigations=off no_timer_check`,
    ...shared('/', 'root', 'readonly=on,'), ...shared(share, 'share'), ...drive(packageImage), ...drive(await imageOfDependencies(commands)), ...drive(dataImage), ...devices
  ], { timeoutMs, ...signal === undefined ? {} : { signal } })
  const ended = await qemu.then(() => 'ended with the machine', (error: unknown) => `failed: ${String(error)}`)
  const said = existsSync(console) ? await readFile(console, 'utf8') : ''
  const death = deathIn(said)
  return { ended, console: said, ...death === undefined ? {} : { death } }
}

/** The line by which a kernel says that it dies. */
export function deathIn (console: string): string | undefined {
  return DEATH.exec(console)?.[0].trim()
}
