// Brings a VM up, by booting it or by restoring it from a memory image.
import { chown, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord } from '../../core/json/is-record.ts'
import type { MemoryImage, RestoreOptions, VmDisk, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import type { ImageFacts } from '../../core/library/vmm/handle.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import type { LaunchOptions } from '../../core/library/vmm/rest-driver.ts'
import { bringUp, checkImageFiles, checkKernel, send, sendToRestore, type RestRequest } from '../../core/library/vmm/rest-launch.ts'
import type { RestVm } from '../../core/library/vmm/rest-vm.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { checkImage, hostCpu, keyOf } from '../../core/library/vmm/shape.ts'
import { addDisk } from './disks.ts'
import { API_SOCKET, diskLink, DRIVER, IMAGE_VERSION, INITRD, KERNEL, RESTORED, SNAPSHOT, VSOCK_SOCKET } from './names.ts'
import { checkSpec, hasBalloon, kernelArguments, memoryBytesOf, restoreRequest, shapeOf, vmConfig } from './spec.ts'
import { removeSnapshotFolder } from './snapshot-folder.ts'
import { readState, withDiskSizes, withoutClockJump, type Captured } from './state.ts'
import { clientOf, createVm, folderOf, type Details } from './vm.ts'

/** The driver's `launch`. */
export async function launchVm (spec: VmSpec, options: LaunchOptions, signal?: AbortSignal): Promise<RestVm> {
  checkSpec(spec)
  signal?.throwIfAborted()
  await checkKernel(spec)
  const facts = await factsOf(spec, options)
  const balloonBytes = hasBalloon(spec) ? 0 : undefined
  return await start(spec, { ...options, facts, hasBalloon: balloonBytes !== undefined }, async (folder, client) => {
    await send(client, [
      { method: 'PUT', path: '/vm.create', body: vmConfig(spec, { balloonBytes }) },
      { method: 'PUT', path: '/vm.boot' }
    ], options.timeoutMs, signal)
    await dropKernel(folder)
  }, signal)
}

/** The driver's `imaging.restore`. */
export async function restoreVm (spec: VmSpec, image: MemoryImage, statePath: string, options: LaunchOptions, { signal, beforeRun }: RestoreOptions = {}): Promise<RestVm> {
  const { memory } = spec
  if (memory === undefined) throw SpecInvalid('a VM is restored on a memory file, and it names none')
  if ((spec.devices ?? []).length > 0) throw SpecInvalid('a VM with devices of the host is restored from no image')
  checkSpec(spec)
  signal?.throwIfAborted()
  const facts = await factsOf(spec, options)
  checkImage(image, { driver: DRIVER, version: IMAGE_VERSION }, facts.shape)
  await checkImageFiles(image, statePath, memory.path, memoryBytesOf(spec))
  const { captured, state } = readState(await readFile(statePath, 'utf8'))
  const { there, coming } = disksOf(spec, captured)
  const { balloonBytes } = captured
  return await start(spec, { ...options, facts: { ...facts, key: image.key }, hasBalloon: balloonBytes !== undefined }, async (folder, client, handle) => {
    const ask = (...requests: RestRequest[]): Promise<void> => sendToRestore(client, requests, options.imageTimeoutMs, signal)
    await placeSnapshot(folder, spec, {
      [SNAPSHOT.config]: JSON.stringify(vmConfig({ ...spec, disks: there }, { balloonBytes })),
      [SNAPSHOT.state]: withoutClockJump(withDiskSizes(state, await sizesThatDiffer(there, captured)))
    })
    await ask(restoreRequest())
    for (const disk of coming) await addDisk(folder, (path, body) => ask({ method: 'PUT', path, ...body === undefined ? {} : { body } }), disk, spec.diskBytesPerSecond !== undefined)
    // Before another server can take the VM over, which knows nothing of them.
    await dropKernel(folder)
    await beforeRun?.(handle)
    await ask({ method: 'PUT', path: '/vm.resume' })
    // Nobody has asked this VM for memory yet, whatever the captured one was asked for.
    if (balloonBytes !== undefined && balloonBytes > 0) await ask({ method: 'PUT', path: '/vm.resize', body: { desired_balloon: 0 } })
    await removeSnapshotFolder(join(folder.path, RESTORED))
  }, signal)
}

/** Cloud Hypervisor answers a guest's reset by booting it again from these files. Without them it ends, as it must when the guest has ended. */
async function dropKernel (folder: RunFolder): Promise<void> {
  for (const name of [KERNEL, INITRD]) await rm(join(folder.path, name))
}

/** The disks that are in the image, and those that are attached afterwards: disks with a unit, when the image's guest had none of them. */
function disksOf ({ disks }: VmSpec, captured: Captured): { readonly there: readonly VmDisk[], readonly coming: readonly VmDisk[] } {
  const known = new Set(captured.disks.map(({ id }) => id))
  const there = disks.filter(({ id }) => known.has(id))
  const missing = captured.disks.find(({ id }) => there.every((disk) => disk.id !== id))
  if (missing !== undefined) throw SpecInvalid(`the image has a disk "${missing.id}", and the VM has none`)
  return { there, coming: disks.filter(({ id }) => !known.has(id)) }
}

async function sizesThatDiffer (disks: readonly VmDisk[], captured: Captured): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  for (const { id, path } of disks) {
    const { size } = await stat(path)
    if (captured.disks.find((one) => one.id === id)?.bytes !== size) sizes.set(id, size)
  }
  return sizes
}

/** Makes a folder in the form of a snapshot, with links to the memory. The configuration is new: this VM's TAP, MAC, disks and sockets, and no text that the captured VM's process has written. */
async function placeSnapshot (folder: RunFolder, { memory, identity }: VmSpec, files: Readonly<Record<string, string>>): Promise<void> {
  const path = join(folder.path, RESTORED)
  await mkdir(path, { mode: 0o700 })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(path, name), text, { mode: 0o600 })
    if (identity !== undefined) await chown(join(path, name), identity.uid, identity.gid)
  }
  await symlink(memory?.path ?? '', join(path, SNAPSHOT.memory))
  if (identity !== undefined) await chown(path, identity.uid, identity.gid)
}

async function factsOf (spec: VmSpec, { vmmVersion }: LaunchOptions): Promise<ImageFacts> {
  const shape = shapeOf(spec, vmmVersion, await hostCpu())
  // A restored VM has a balloon exactly when the captured one had, so the balloon is no part of the shape.
  return { key: keyOf(shape, [...kernelArguments(spec), hasBalloon(spec) ? 'balloon' : '']), shape, vcpus: spec.vcpus, memoryBytes: spec.memoryBytes }
}

/** The key by which a template is found. */
export async function keyFor (spec: VmSpec, options: LaunchOptions): Promise<string> {
  return (await factsOf(spec, options)).key
}

type Fill = (folder: RunFolder, client: RestClient, handle: VmHandle) => Promise<void>

async function start (spec: VmSpec, options: LaunchOptions & { readonly facts: ImageFacts, readonly hasBalloon: boolean }, fill: Fill, signal: AbortSignal | undefined): Promise<RestVm> {
  const folder = folderOf(spec.directory)
  const client = clientOf(folder, options.timeoutMs)
  const details: Details = {
    ...options.hasBalloon ? { balloonBytes: memoryBytesOf(spec) } : {},
    ...(spec.devices ?? []).length > 0 ? { hasDevices: true } : {},
    ...spec.diskBytesPerSecond === undefined ? {} : { isLimited: true }
  }
  return await bringUp(spec, {
    name: 'Cloud Hypervisor',
    driver: DRIVER,
    vmmVersion: options.vmmVersion,
    command: [options.binary, '--api-socket', API_SOCKET],
    folder,
    client,
    vsock: VSOCK_SOCKET,
    links: { [KERNEL]: spec.kernel.path, [INITRD]: spec.kernel.initrd, ...Object.fromEntries(spec.disks.map((disk) => [diskLink(disk), disk.path])) },
    ping: '/vmm.ping',
    versionIn,
    timeoutMs: options.timeoutMs,
    facts: options.facts,
    details,
    fill: (handle) => fill(folder, client, handle),
    makeVm: (handle) => createVm(handle, { status: 'running' }, options),
    onError: options.onError
  }, signal)
}

function versionIn (answer: unknown): string | undefined {
  const version = isRecord(answer) ? answer['build_version'] : undefined
  return typeof version === 'string' ? /^v([0-9]+\.[0-9]+(?:\.[0-9]+)?)/.exec(version)?.[1] : undefined
}
