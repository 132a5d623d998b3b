// What the tests of the QEMU driver boot: the guest plugin's own system, and an image of Debian's busybox with a few programs.
import { randomUUID } from 'node:crypto'
import { chmod, copyFile, mkdir, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { HostCommands } from '../../../core/contracts/services.ts'
import type { HypervisorDriver, VmSpec } from '../../../core/library/hypervisor.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { manifest } from '../../../plugins/hypervisor-qemu/manifest.ts'
import type { GuestService, GuestSystem } from '../../../plugins/guest/contract.ts'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { createSystems } from '../../../plugins/guest/system/systems.ts'
import { q35 } from '../../../plugins/hypervisor-qemu/board.ts'
import type { Board } from '../../../plugins/hypervisor-qemu/contract.ts'
import { createQemuDriver } from '../../../plugins/hypervisor-qemu/driver.ts'
import type { HypervisorQemuConfig } from '../../../plugins/hypervisor-qemu/manifest.ts'
import { isEmulatedHost } from '../../emulated-host/slow.ts'

const OVERLAY_BYTES = 2 ** 26
const ANSWER_TIMEOUT_MS = 60_000
// Shared by all runs, as the server's own tests do.
const CACHE = join(packageRoot, '.cache')

export const log = pino({ level: 'silent' })
export const commands = createHostCommands({ packages: manifest.hostPackages })

export const config: HypervisorQemuConfig = {
  binary: process.env['BERTH_QEMU'] ?? 'qemu-system-x86_64',
  accelerator: 'auto',
  translationCacheMib: 256,
  probeTimeout: '5s',
  launchTimeout: '15s',
  imageTimeout: '1m',
  heartbeatInterval: '500ms',
  heartbeatDeadline: '1s',
  // There may be processors there that are themselves emulated.
  ...process.env['BERTH_TEST_KVM'] === undefined ? {} : { accelerator: 'kvm', probeTimeout: '150s', launchTimeout: '2m', imageTimeout: '5m' }
}

const systems = createSystems({
  log,
  commands,
  folder: join(CACHE, 'system'),
  initPath: fileURLToPath(new URL('../../../guest/berth-init', import.meta.url)),
  config: { kernelPackage: 'linux-image-cloud-amd64', kernelCache: join(CACHE, 'packages'), kernelHeaders: true, kernelArguments: [], prepare: false, answerTimeout: `${ANSWER_TIMEOUT_MS}ms` }
})

/** The guest system, built on first use. */
export const guestSystem = (): Promise<GuestSystem> => systems.system()

const answers = new Map<string, ReturnType<HostCommands['run']>>()

/** What QEMU says of itself is the same each time. An emulated host takes a second for each of the two questions that every driver begins with. */
const rememberedCommands: HostCommands = {
  async run (file, args, options) {
    if (args[0] !== '--version' && args[1] !== 'help') return await commands.run(file, args, options)
    const question = [file, ...args].join(' ')
    const answer = answers.get(question) ?? commands.run(file, args, options)
    answers.set(question, answer)
    return await answer
  }
}

/** A driver as a new server makes it. */
export async function makeDriver (changes: Partial<HypervisorQemuConfig> = {}, folder?: string, board: Board = q35): Promise<HypervisorDriver> {
  return createQemuDriver({ ...config, ...changes }, {
    commands: isEmulatedHost ? rememberedCommands : commands,
    guest: { ...guest, system: guestSystem },
    folder: folder ?? join(CACHE, `hypervisor-${board.driver}`),
    onError: (error) => { throw error }
  }, board)
}

export const guest: Pick<GuestService, 'link'> = {
  link: (stream) => new StreamLink(stream, { log, answerTimeoutMs: ANSWER_TIMEOUT_MS })
}

export interface Machines {
  /** A machine whose writable disk stands in `folder`. */
  make (folder: string): Promise<Pick<VmSpec, 'kernel' | 'disks' | 'vcpus' | 'memoryBytes'>>
  remove (): Promise<void>
}

const PROGRAMS = {
  wait: 'exec /bin/busybox sleep 1000000',
  print: 'echo "$@"',
  exit: 'exit "$1"',
  flags: 'echo to the console >/dev/ttyS0; grep -m1 ^flags /proc/cpuinfo',
  // It stays, since a VM that a full disk had stopped is said to run once it has run for an interval.
  fill: 'dd if=/dev/zero of=/big bs=1M count=24 2>&1 && sync && echo filled && exec sleep 1000000',
  // It waits without a process for each wait: starting one is most of what an emulated processor would do then.
  tick: 'read -r nonce </proc/sys/kernel/random/uuid; i=0; busybox sleep 1000000 | while :; do i=$((i+1)); echo "$nonce $i"; read -r -t 0.02 never; done',
  // Memory that holds something: a page of zeros costs nothing in an image.
  touch: 'busybox mount -t tmpfs -o size=100% tmpfs /tmp; i=0; while [ $i -lt "$1" ]; do cat /bin/busybox; i=$((i+2)); done >/tmp/big; echo touched; exec sleep 1000000',
  // The same, and says again and again what it holds.
  hold: 'busybox mount -t tmpfs -o size=100% tmpfs /tmp; i=0; while [ $i -lt "$1" ]; do cat /bin/busybox; i=$((i+2)); done >/tmp/big; while :; do busybox md5sum </tmp/big; sleep 0.1; done',
  count: 'i=0; while :; do echo $i; i=$((i+1)); done'
}

/** Makes what all machines of one test file share, where any user can read it. */
export async function makeMachines (): Promise<Machines> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-machines-'))
  await chmod(folder, 0o711)
  const system = await guestSystem()
  const kernel = join(folder, 'vmlinux')
  const initrd = join(folder, 'initrd')
  await copyFile(system.kernel, kernel)
  await copyFile(system.initrd, initrd)
  const image = await makeImage(folder)
  return {
    async make (directory) {
      const overlay = join(directory, `overlay-${randomUUID()}.ext4`)
      const handle = await open(overlay, 'wx', 0o600)
      await handle.truncate(OVERLAY_BYTES)
      await handle.close()
      await commands.run('mkfs.ext4', ['-q', '-F', '-E', 'nodiscard', overlay])
      return {
        vcpus: 1,
        memoryBytes: 2 ** 27,
        kernel: { path: kernel, initrd, arguments: system.arguments },
        disks: [{ id: 'root', path: image, readonly: true }, { id: 'overlay', path: overlay, readonly: false }]
      }
    },
    remove: () => rm(folder, { recursive: true, force: true })
  }
}

async function makeImage (folder: string): Promise<string> {
  const root = join(folder, 'root')
  for (const name of ['bin', 'dev', 'etc', 'proc', 'run', 'sys', 'tmp']) await mkdir(join(root, name), { recursive: true })
  await copyFile('/bin/busybox', join(root, 'bin/busybox'))
  for (const applet of ['cat', 'dd', 'grep', 'sleep', 'sync']) await symlink('busybox', join(root, 'bin', applet))
  for (const [name, script] of Object.entries(PROGRAMS)) await writeFile(join(root, 'bin', name), `#!/bin/busybox sh\nPATH=/bin\n${script}\n`, { mode: 0o755 })
  const image = join(folder, 'image.erofs')
  await commands.run('mkfs.erofs', ['--all-root', image, root])
  await rm(root, { recursive: true })
  return image
}
