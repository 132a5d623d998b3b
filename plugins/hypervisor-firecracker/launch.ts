// Brings a VM up, by booting it or by restoring it from a memory image.
import { chown, copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord } from '../../core/json/is-record.ts'
import type { MemoryImage, RestoreOptions, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import type { ImageFacts } from '../../core/library/vmm/handle.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import type { LaunchOptions } from '../../core/library/vmm/rest-driver.ts'
import { bringUp, checkImageFiles, checkKernel, send, sendToRestore } from '../../core/library/vmm/rest-launch.ts'
import type { RestVm } from '../../core/library/vmm/rest-vm.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { checkImage, hostCpu, keyOf } from '../../core/library/vmm/shape.ts'
import { startJailed, takeUserfaultfd, type Jailer } from './jail.ts'
import { API_SOCKET, diskLink, DRIVER, IMAGE_VERSION, INITRD, KERNEL, MEMORY, STATE, VSOCK_SOCKET } from './names.ts'
import { bootRequests, checkSpec, kernelArguments, limitRequests, loadRequest, memoryMibOf, shapeOf } from './spec.ts'
import { clientOf, createVm, folderOf } from './vm.ts'

export interface FirecrackerOptions extends LaunchOptions {
  /** absent: Firecracker is started without one */
  readonly jailer?: Jailer
}

/** The driver's `launch`. */
export async function launchVm (spec: VmSpec, options: FirecrackerOptions, signal?: AbortSignal): Promise<RestVm> {
  checkSpec(spec)
  signal?.throwIfAborted()
  await checkKernel(spec)
  const facts = await factsOf(spec, options)
  const { path, initrd } = spec.kernel
  return await start(spec, options, { facts, files: { [KERNEL]: path, [INITRD]: initrd }, fill: async (_, client) => { await send(client, bootRequests(spec), options.timeoutMs, signal) } }, signal)
}

/** The driver's `imaging.restore`. */
export async function restoreVm (spec: VmSpec, image: MemoryImage, statePath: string, options: FirecrackerOptions, { signal, beforeRun }: RestoreOptions = {}): Promise<RestVm> {
  const { memory, identity } = spec
  if (memory === undefined) throw SpecInvalid('a VM is restored on a memory file, and it names none')
  checkSpec(spec)
  signal?.throwIfAborted()
  const facts = await factsOf(spec, options)
  checkImage(image, { driver: DRIVER, version: IMAGE_VERSION }, facts.shape)
  await checkImageFiles(image, statePath, memory.path, memoryMibOf(spec) * 2 ** 20)
  const fill: Fill = async (folder, client, handle) => {
    const state = join(folder.room, STATE)
    await copyFile(statePath, state)
    if (identity !== undefined) await chown(state, identity.uid, identity.gid)
    await sendToRestore(client, [
      loadRequest(spec),
      ...limitRequests(spec.disks.map(({ id }) => id), spec.diskBytesPerSecond)
    ], options.imageTimeoutMs, signal)
    await beforeRun?.(handle)
    await sendToRestore(client, [{ method: 'PATCH', path: '/vm', body: { state: 'Resumed' } }], options.imageTimeoutMs, signal)
    await rm(state)
  }
  return await start(spec, options, { facts: { ...facts, key: image.key }, files: { [MEMORY]: memory.path }, fill }, signal)
}

async function factsOf (spec: VmSpec, { vmmVersion }: LaunchOptions): Promise<ImageFacts> {
  const shape = shapeOf(spec, vmmVersion, await hostCpu())
  return { key: keyOf(shape, kernelArguments(spec)), shape, vcpus: spec.vcpus, memoryBytes: spec.memoryBytes }
}

/** The key by which a template is found. */
export async function keyFor (spec: VmSpec, options: LaunchOptions): Promise<string> {
  return (await factsOf(spec, options)).key
}

type Fill = (folder: RunFolder, client: RestClient, handle: VmHandle) => Promise<void>

interface Beginning {
  readonly facts: ImageFacts
  /** besides its disks, by their names in the VM's folder */
  readonly files: Readonly<Record<string, string>>
  readonly fill: Fill
}

async function start (spec: VmSpec, options: FirecrackerOptions, { facts, files, fill }: Beginning, signal: AbortSignal | undefined): Promise<RestVm> {
  const { identity } = spec
  const { binary, jailer } = options
  const isJailed = identity !== undefined && jailer !== undefined
  const folder = folderOf(spec.directory, { isJailed })
  const args = ['--api-sock', API_SOCKET, '--enable-pci', '--level', 'Warn']
  const links = { ...files, ...Object.fromEntries(spec.disks.map(({ id, path }) => [diskLink(id), path])) }
  const client = clientOf(folder, options.timeoutMs)
  return await bringUp(spec, {
    name: 'Firecracker',
    driver: DRIVER,
    vmmVersion: options.vmmVersion,
    ...isJailed ? startJailed(jailer, identity, links, args) : { command: [binary, ...args], links },
    folder,
    client,
    vsock: VSOCK_SOCKET,
    ping: '/version',
    versionIn,
    timeoutMs: options.timeoutMs,
    facts,
    async fill (handle) {
      if (isJailed) await takeUserfaultfd(folder)
      await fill(folder, client, handle)
    },
    makeVm: (handle) => createVm(handle, { status: 'running' }, options),
    onError: options.onError
  }, signal)
}

function versionIn (answer: unknown): string | undefined {
  const version = isRecord(answer) ? answer['firecracker_version'] : undefined
  return typeof version === 'string' ? /^([0-9]+\.[0-9]+\.[0-9]+)/.exec(version)?.[1] : undefined
}
