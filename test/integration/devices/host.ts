// A host with an IOMMU, for tests on hosts without one: a machine under TCG with an emulated IOMMU and network cards, which boots Debian's standard kernel and has this host's
// own programs, read-only.
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { cpioArchive, type CpioEntry } from '../../../plugins/guest/system/cpio.ts'
import { downloadKernel, resolvePackage, unpackKernel } from '../../../plugins/guest/system/kernel-package.ts'
import { openModules, type KernelModule } from '../../../plugins/guest/system/modules.ts'

/** `linux-image-cloud-amd64`, which guests run, has neither vfio nor 9p. */
const KERNEL_PACKAGE = 'linux-image-amd64'
const MEMORY_MIB = 2048
const COMPILED = ['core', 'plugins', 'proxy', 'setup', 'test/integration/devices', 'test/helpers/exec.js']
/** the guests' first process, which is there whatever folder the rest is compiled to */
const GUEST = 'dist/guest'
const BUSYBOX = '/bin/busybox'
/** loaded one after the other, each with what it needs */
const BOOT_MODULES = ['virtio_pci', 'virtio_blk', '9pnet_virtio', '9p', 'erofs', 'overlay']
/** What erofs asks older kernels for by the name of an algorithm, so that no module says that it needs it. It is loaded first, where there is one. */
const CHECKSUM_MODULE = 'crc32c_generic'

export interface HostOptions {
  /** the test's own; what the machine writes to `/run/share` is found in its `share` */
  readonly folder: string
  /** a folder that the machine finds at `/run/data`; what it changes there it changes for itself */
  readonly data: string
  /** lines of shell, run by root in the machine; it powers off afterwards */
  readonly script: string
  /** further arguments of QEMU: the cards */
  readonly devices: readonly string[]
  readonly timeoutMs: number
}

export interface HostRun {
  /** how QEMU ended */
  readonly ended: string
  /** what the machine's console showed */
  readonly console: string
}

/** Boots the machine and runs the script in it. Resolves when it is off, or was ended after its time. */
export async function runOnHost ({ folder, data, script, devices, timeoutMs }: HostOptions): Promise<HostRun> {
  const commands = createHostCommands()
  const share = join(folder, 'share')
  await mkdir(share, { recursive: true })
  const found = await resolvePackage(commands, KERNEL_PACKAGE)
  const { image, modules } = await unpackKernel(commands, await downloadKernel(commands, found, join(packageRoot, '.cache/packages')), join(share, 'kernel'))
  await commands.run('depmod', ['-b', join(modules, '../../..'), basename(modules)], { timeoutMs: 120_000 })
  await writeFile(join(share, 'script.sh'), script)
  await chmod(join(share, 'script.sh'), 0o755)
  const packageImage = join(folder, 'package.erofs')
  await imageOfPackage(commands, join(folder, 'package'), packageImage)
  const dataImage = join(folder, 'data.erofs')
  await commands.run('mkfs.erofs', ['--quiet', dataImage, data], { timeoutMs: 120_000 })
  const initrd = join(folder, 'initrd')
  await writeFile(initrd, cpioArchive(await initrdEntries(modules, modules.slice(share.length), folder)))
  const console = join(folder, 'console')
  // It ends with this process, however that ends.
  const qemu = commands.run('setpriv', [
    '--pdeathsig', 'KILL', 'qemu-system-x86_64',
    '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-serial', `file:${console}`,
    '-machine', 'q35,kernel-irqchip=split', '-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'max', '-smp', '2', '-m', `${MEMORY_MIB}M`,
    '-device', 'intel-iommu,intremap=on,caching-mode=on',
    // On a busy host the kernel sees too few interrupts of its timer while it counts them, and takes it for broken.
    '-kernel', image, '-initrd', initrd, '-append', 'console=ttyS0 quiet intel_iommu=on panic=-1 mitigations=off no_timer_check',
    '-virtfs', 'local,path=/,readonly=on,security_model=none,mount_tag=root,multidevs=remap',
    '-virtfs', `local,path=${share},security_model=none,mount_tag=share,multidevs=remap`,
    '-drive', `file=${packageImage},format=raw,if=virtio,readonly=on`,
    '-drive', `file=${dataImage},format=raw,if=virtio,readonly=on`,
    ...devices
  ], { timeoutMs })
  const ended = await qemu.then(() => 'ended with the machine', (error: unknown) => `failed: ${String(error)}`)
  return { ended, console: existsSync(console) ? await readFile(console, 'utf8') : '' }
}

/** This package on a disk: its thousands of small files would each take several messages to this host. */
async function imageOfPackage (commands: HostCommands, staging: string, image: string): Promise<void> {
  const { packages }: { packages: Readonly<Record<string, { readonly dev?: boolean }>> } = JSON.parse(await readFile(join(packageRoot, 'node_modules/.package-lock.json'), 'utf8'))
  const needed = Object.entries(packages).filter(([path, { dev }]) => dev !== true && existsSync(join(packageRoot, path))).map(([path]) => path)
  const compiled = relative(packageRoot, fileURLToPath(new URL('../../..', import.meta.url)))
  await mkdir(staging)
  await commands.run('cp', ['--archive', '--parents', '--target-directory', staging, 'package.json', GUEST, ...needed, ...COMPILED.map((name) => join(compiled, name))], { cwd: packageRoot, timeoutMs: 120_000 })
  await commands.run('mkfs.erofs', ['--quiet', image, staging], { timeoutMs: 120_000 })
}

/** The root that the kernel begins with: busybox, and what it takes to see this host's files. */
async function initrdEntries (modules: string, modulesInShare: string, scratch: string): Promise<readonly CpioEntry[]> {
  const folder = await openModules(createHostCommands(), modules, scratch)
  const loaded: KernelModule[] = []
  for (const name of [CHECKSUM_MODULE].filter(folder.has).concat(BOOT_MODULES)) await folder.add(name, loaded)
  return [
    ...['bin', 'dev', 'proc', 'sys', 'modules', 'lower', 'data', 'upper', 'root'].map((path): CpioEntry => ({ path, kind: 'dir', mode: 0o755 })),
    { path: 'bin/busybox', kind: 'file', mode: 0o755, content: await readFile(BUSYBOX) },
    ...loaded.map(({ content }, index): CpioEntry => ({ path: `modules/${String(index).padStart(2, '0')}.ko`, kind: 'file', mode: 0o644, content })),
    { path: 'init', kind: 'file', mode: 0o755, content: Buffer.from(init(dirname(modulesInShare))) }
  ]
}

function init (modulesInShare: string): string {
  return `#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs none /dev
exec > /dev/console 2>&1
$B mount -t proc none /proc
$B mount -t sysfs none /sys
for module in /modules/*.ko; do $B insmod $module; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /lower
$B mount -t tmpfs none /upper
$B mkdir /upper/files /upper/work /upper/data-files /upper/data-work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work none /root
$B mount -t tmpfs none /root/run
$B mkdir -p /root/run/share /root/run/data /root/lib/modules
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 share /root/run/share
$B mount --bind /root/run/share${modulesInShare} /root/lib/modules
$B mount -t erofs -o ro /dev/vda /root${packageRoot}
$B mount -t erofs -o ro /dev/vdb /data
$B mount -t overlay -o lowerdir=/data,upperdir=/upper/data-files,workdir=/upper/data-work none /root/run/data
for folder in dev proc sys; do $B mount --move /$folder /root/$folder; done
exec $B switch_root /root /bin/sh -c 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run
/run/share/script.sh
sync
echo o > /proc/sysrq-trigger
read forever < /dev/console'
`
}
