// A VM started with a bare QEMU command line, without any driver: the real kernel and the real berth-init, for tests of the conversation.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { Test } from 'tap'
import { packageRoot } from '../../../../core/package-root.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import type { GuestSystem } from '../../../../plugins/guest/contract.ts'
import { createSystems, type Systems } from '../../../../plugins/guest/system/systems.ts'
import { Qmp } from './qmp.ts'

const commands = createHostCommands()
/** shared with the other tests, so that the package is downloaded once */
export const KERNEL_CACHE = join(packageRoot, '.cache/packages')
const CONFIG = { kernelPackage: 'linux-image-cloud-amd64', kernelCache: KERNEL_CACHE, kernelHeaders: true, kernelArguments: [], prepare: false, answerTimeout: '2m' }

/** The compiled first process: the build's, or one made for this test alone. */
export async function initPath (folder: string): Promise<string> {
  const built = fileURLToPath(new URL('../../../../guest/berth-init', import.meta.url))
  if (existsSync(built)) return built
  const own = join(folder, 'berth-init')
  await commands.run('sh', [join(packageRoot, 'plugins/guest/init/build.sh'), own])
  return own
}

export async function testFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-guest-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export async function testSystems (folder: string): Promise<Systems> {
  return createSystems({ commands, log: pino({ level: 'silent' }), folder: join(folder, 'system'), initPath: await initPath(folder), config: CONFIG })
}

/** A root file system of the host's own busybox, with a user and a folder of files. */
export async function makeRoot (folder: string, fill: (root: string) => Promise<void> = async () => {}): Promise<string> {
  const root = join(folder, 'root')
  for (const name of ['bin', 'etc', 'tmp', 'data/many', 'proc', 'sys', 'dev', 'root']) await mkdir(join(root, name), { recursive: true })
  await copyFile('/bin/busybox', join(root, 'bin/busybox'))
  for (const name of ['sh', 'cat', 'sort', 'sleep', 'id', 'head', 'echo', 'stty', 'sha256sum', 'kill', 'pwd', 'env', 'yes']) await symlink('busybox', join(root, 'bin', name))
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n')
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nann:x:1000:\n')
  await writeFile(join(root, 'data/hello'), 'hello\n')
  await symlink('hello', join(root, 'data/link'))
  for (let index = 0; index < 300; index++) await writeFile(join(root, 'data/many', `f${index}`), `content of ${index}\n`)
  await fill(root)
  const image = join(folder, 'root.erofs')
  await commands.run('mkfs.erofs', ['-T0', image, root])
  return image
}

export async function makeOverlay (folder: string, bytes = 1024 * 2 ** 20): Promise<string> {
  const path = join(folder, 'overlay.ext4')
  const file = await open(path, 'w')
  await file.truncate(bytes)
  await file.close()
  await commands.run('mkfs.ext4', ['-q', '-F', '-O', '^has_journal', path])
  return path
}

const CONSOLE_LINES = 25

export interface Machine {
  readonly system: GuestSystem
  readonly folder: string
  readonly qmp: Qmp
  /** A new stream to the guest; an earlier one ends. */
  connect (): Promise<Socket>
  /** the guest kernel's console */
  console (): Promise<string>
  output (): Promise<string>
  report (): Promise<string>
  /** resolves when QEMU has ended by itself */
  readonly ended: Promise<void>
}

export interface MachineOptions {
  /** the memory as a file: a new one that the machine writes, or that of a memory image, which it only reads */
  readonly memory?: { readonly path: string, readonly shared: boolean }
  /** waits for the devices' state instead of booting */
  readonly incoming?: boolean
  /** a disk of this machine's own; default: a new one of 1 GiB */
  readonly overlay?: string
  /** default: one of `makeRoot` */
  readonly image?: string
  readonly system?: GuestSystem
  /** whether it has a network device; default true */
  readonly network?: boolean
}

export async function startMachine (t: Test, folder: string, options: MachineOptions = {}): Promise<Machine> {
  const system = options.system ?? await (await testSystems(folder)).system()
  const disks = [options.image ?? await makeRoot(folder), options.overlay ?? await makeOverlay(folder)]
  const path = (name: string) => join(folder, name)
  for (const name of ['console', 'output', 'report']) await writeFile(path(name), '')
  const drive = (file: string, index: number) => ['-drive', `id=d${index},file=${file},format=raw,if=none${index === 0 ? ',readonly=on' : ''}`, '-device', `virtio-blk-pci,drive=d${index}`]
  const port = (name: string, backend: string) => ['-chardev', `${backend},id=${name}`, '-device', `virtserialport,chardev=${name},name=berth.${name}`]
  const memory = options.memory === undefined ? ['-machine', 'q35'] : ['-machine', 'q35,memory-backend=memory',
    '-object', `memory-backend-file,id=memory,size=512M,mem-path=${options.memory.path},share=${options.memory.shared ? 'on' : 'off'}`]
  const child = spawn('qemu-system-x86_64', [
    '-accel', 'tcg', ...memory, '-m', '512', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none',
    '-serial', `file:${path('console')}`, '-kernel', system.kernel, '-initrd', system.initrd, // as the driver adds it under emulation: a busy host's timer looks broken to the kernel otherwise
    '-append', [...system.arguments, 'no_timer_check'].join(' '),
    '-qmp', `unix:${path('qmp')},server=on,wait=off`, ...options.incoming === true ? ['-incoming', 'defer'] : [],
    '-device', 'virtio-serial-pci', '-device', 'virtio-rng-pci', ...options.network === false ? [] : ['-netdev', 'user,id=net,restrict=on', '-device', 'virtio-net-pci,netdev=net,romfile='],
    ...port('agent', `socket,path=${path('agent')},server=on,wait=off`), ...port('output', `file,path=${path('output')}`), ...port('report', `file,path=${path('report')}`),
    ...disks.flatMap(drive)
  ], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit').then(() => {})
  t.teardown(async () => {
    const how = child.signalCode ?? child.exitCode ?? 'still there'
    child.kill('SIGKILL')
    await ended
    if (!t.passing()) console.error(`QEMU at the end of the test: ${how}; the end of the guest's console:\n${(await readFile(path('console'), 'utf8')).split('\n').slice(-CONSOLE_LINES).join('\n')}`)
  })
  return {
    system,
    folder,
    ended,
    qmp: await Qmp.over(await connectWhenThere(path('qmp'))),
    connect: () => connectWhenThere(path('agent')),
    console: () => readFile(path('console'), 'utf8'),
    output: () => readFile(path('output'), 'utf8'),
    report: () => readFile(path('report'), 'utf8')
  }
}

/** QEMU makes its socket some milliseconds after its start and says so nowhere that a test can wait for. */
export async function connectWhenThere (path: string): Promise<Socket> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const socket = connect(path)
    try {
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ECONNREFUSED'))) throw error
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  throw new Error(`nobody listens at ${path}`)
}
