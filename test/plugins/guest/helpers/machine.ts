// A VM started with a bare QEMU command line, without any driver: the real kernel and the real berth-init, for tests of the conversation.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import { packageRoot } from '../../../../core/package-root.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import type { GuestSystem } from '../../../../plugins/guest/contract.ts'
import { createSystems, type Systems } from '../../../../plugins/guest/system/systems.ts'

const commands = createHostCommands()
/** shared with the other tests, so that the package is downloaded once */
export const KERNEL_CACHE = join(packageRoot, '.cache/packages')
const CONFIG = { kernelPackage: 'linux-image-cloud-amd64', kernelCache: KERNEL_CACHE, kernelArguments: [], prepare: false, answerTimeoutMs: 120_000 }

/** The compiled first process: the build's, or one made for this test alone. */
export async function initPath (folder: string): Promise<string> {
  const built = join(packageRoot, 'dist/guest/berth-init')
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
async function makeRoot (folder: string): Promise<string> {
  const root = join(folder, 'root')
  for (const name of ['bin', 'etc', 'tmp', 'data/many', 'proc', 'sys', 'dev', 'root']) await mkdir(join(root, name), { recursive: true })
  await copyFile('/bin/busybox', join(root, 'bin/busybox'))
  for (const name of ['sh', 'cat', 'sort', 'sleep', 'id', 'head', 'echo', 'stty', 'sha256sum', 'kill', 'pwd', 'env', 'yes']) await symlink('busybox', join(root, 'bin', name))
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n')
  await writeFile(join(root, 'etc/group'), 'root:x:0:\nann:x:1000:\n')
  await writeFile(join(root, 'data/hello'), 'hello\n')
  await symlink('hello', join(root, 'data/link'))
  for (let index = 0; index < 300; index++) await writeFile(join(root, 'data/many', `f${index}`), `content of ${index}\n`)
  const image = join(folder, 'root.erofs')
  await commands.run('mkfs.erofs', ['-T0', image, root])
  return image
}

async function makeOverlay (folder: string): Promise<string> {
  const path = join(folder, 'overlay.ext4')
  const file = await open(path, 'w')
  await file.truncate(1024 * 2 ** 20)
  await file.close()
  await commands.run('mkfs.ext4', ['-q', '-F', '-O', '^has_journal', path])
  return path
}

export interface Machine {
  readonly system: GuestSystem
  /** A new stream to the guest; an earlier one ends. */
  connect (): Promise<Socket>
  /** the guest kernel's console */
  console (): Promise<string>
  output (): Promise<string>
  report (): Promise<string>
  /** resolves when QEMU has ended by itself */
  readonly ended: Promise<void>
}

export async function startMachine (t: Test, folder: string): Promise<Machine> {
  const system = await (await testSystems(folder)).system()
  const disks = [await makeRoot(folder), await makeOverlay(folder)]
  const path = (name: string) => join(folder, name)
  for (const name of ['console', 'output', 'report']) await writeFile(path(name), '')
  const drive = (file: string, index: number) => ['-drive', `id=d${index},file=${file},format=raw,if=none${index === 0 ? ',readonly=on' : ''}`, '-device', `virtio-blk-pci,drive=d${index}`]
  const port = (name: string, backend: string) => ['-chardev', `${backend},id=${name}`, '-device', `virtserialport,chardev=${name},name=berth.${name}`]
  const child = spawn('qemu-system-x86_64', [
    '-accel', 'tcg', '-machine', 'q35', '-m', '512', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none',
    '-serial', `file:${path('console')}`, '-kernel', system.kernel, '-initrd', system.initrd, '-append', system.arguments.join(' '),
    '-device', 'virtio-serial-pci', '-device', 'virtio-rng-pci',
    ...port('agent', `socket,path=${path('agent')},server=on,wait=off`), ...port('output', `file,path=${path('output')}`), ...port('report', `file,path=${path('report')}`),
    ...disks.flatMap(drive)
  ], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit').then(() => {})
  t.teardown(async () => { child.kill('SIGKILL'); await ended })
  return {
    system,
    ended,
    connect: () => connectWhenThere(path('agent')),
    console: () => readFile(path('console'), 'utf8'),
    output: () => readFile(path('output'), 'utf8'),
    report: () => readFile(path('report'), 'utf8')
  }
}

/** QEMU makes its socket some milliseconds after its start and says so nowhere that a test can wait for. */
async function connectWhenThere (path: string): Promise<Socket> {
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
