// Brings a VM up, by booting it or by restoring it from a memory image. Undoes everything when that does not come about.
import { chown, copyFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemoryImage, RestoreOptions, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { ImageDamaged, LaunchFailed, RestoreFailed, SpecInvalid, VmmRefused } from '../../core/library/vmm/errors.ts'
import { makeHandle, type ImageFacts } from '../../core/library/vmm/handle.ts'
import { checkNamespace } from '../../core/library/vmm/network.ts'
import { linkOutput, outputArgs, outputEnded, OUTPUT_PROGRAM } from '../../core/library/vmm/output.ts'
import { mayListenLater, type RestClient } from '../../core/library/vmm/rest-client.ts'
import type { RestVm } from '../../core/library/vmm/rest-vm.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { checkImage, hostCpu, keyOf } from '../../core/library/vmm/shape.ts'
import { startVmm, type Vmm } from '../../core/library/vmm/start.ts'
import { endProcess } from '../../core/process/end.ts'
import { createUndo } from '../../core/undo.ts'
import { API_SOCKET, diskLink, DRIVER, IMAGE_VERSION, MEMORY, NIC, STATE, VSOCK_SOCKET } from './names.ts'
import { bootRequests, checkSpec, kernelArguments, limitRequests, memoryMibOf, shapeOf, type Request } from './spec.ts'
import { clientOf, createVm, folderOf, type VmOptions } from './vm.ts'

const CONNECT_PAUSE_MS = 2

export interface LaunchOptions extends VmOptions {
  readonly binary: string
  readonly vmmVersion: string
  /** time for Firecracker to answer, `ms` */
  readonly timeoutMs: number
}

/** The driver's `launch`. */
export async function launchVm (spec: VmSpec, options: LaunchOptions, signal?: AbortSignal): Promise<RestVm> {
  checkSpec(spec)
  signal?.throwIfAborted()
  const facts = await factsOf(spec, options)
  return await bringUp(spec, options, facts, async (_, client) => { await send(client, bootRequests(spec), options.timeoutMs, signal) }, signal)
}

/** The driver's `imaging.restore`. */
export async function restoreVm (spec: VmSpec, image: MemoryImage, statePath: string, options: LaunchOptions, { signal, beforeRun }: RestoreOptions = {}): Promise<RestVm> {
  const { memory, identity, network } = spec
  if (memory === undefined) throw SpecInvalid('a VM is restored on a memory file, and it names none')
  checkSpec(spec)
  signal?.throwIfAborted()
  const facts = await factsOf(spec, options)
  checkImage(image, { driver: DRIVER, version: IMAGE_VERSION }, facts.shape)
  await checkFiles(spec, image, statePath, memory.path)
  return await bringUp(spec, options, { ...facts, key: image.key }, async (folder, client, handle) => {
    await folder.link(MEMORY, memory.path)
    const state = join(folder.path, STATE)
    await copyFile(statePath, state)
    if (identity !== undefined) await chown(state, identity.uid, identity.gid)
    const load = {
      snapshot_path: STATE,
      mem_backend: { backend_type: 'File', backend_path: MEMORY },
      // The snapshot has the other VM's TAP; disks and sockets have the same names in every run folder.
      ...network === undefined ? {} : { network_overrides: [{ iface_id: NIC, host_dev_name: network.tap }] },
      resume_vm: false
    }
    const requests: Request[] = [
      { method: 'PUT', path: '/snapshot/load', body: load },
      ...limitRequests(spec.disks.map(({ id }) => id), spec.diskBytesPerSecond)
    ]
    const ask = async (some: readonly Request[]): Promise<void> => {
      await send(client, some, options.imageTimeoutMs, signal).catch((error: unknown) => { throw VmmRefused.is(error) ? RestoreFailed.from(error, error.message) : error })
    }
    await ask(requests)
    await beforeRun?.(handle)
    await ask([{ method: 'PATCH', path: '/vm', body: { state: 'Resumed' } }])
    await rm(state)
  }, signal)
}

async function factsOf (spec: VmSpec, { vmmVersion }: LaunchOptions): Promise<ImageFacts> {
  const shape = shapeOf(spec, vmmVersion, await hostCpu())
  return { key: keyOf(shape, kernelArguments(spec)), shape, vcpus: spec.vcpus, memoryBytes: spec.memoryBytes }
}

/** For finding a template. */
export async function keyFor (spec: VmSpec, options: LaunchOptions): Promise<string> {
  return (await factsOf(spec, options)).key
}

async function checkFiles (spec: VmSpec, image: MemoryImage, statePath: string, memoryPath: string): Promise<void> {
  const state = await stat(statePath)
  if (state.size !== image.stateBytes) throw ImageDamaged(`the state file ${statePath} has ${state.size} bytes of ${image.stateBytes}`)
  const memory = await stat(memoryPath)
  const wanted = memoryMibOf(spec) * 2 ** 20
  if (!memory.isFile() || memory.size !== wanted) throw SpecInvalid(`the memory file ${memoryPath} has ${memory.size} bytes, and must have ${wanted}`)
}

type Fill = (folder: RunFolder, client: RestClient, handle: VmHandle) => Promise<void>

async function bringUp (spec: VmSpec, options: LaunchOptions, facts: ImageFacts, fill: Fill, signal: AbortSignal | undefined): Promise<RestVm> {
  if (spec.network !== undefined) await checkNamespace(spec.network)
  const folder = folderOf(spec.directory)
  await folder.reclaim()
  const undo = createUndo()
  try {
    await folder.make(spec.identity)
    undo.add(async () => { folder.remove() })
    await linkOutput(folder, spec.files)
    for (const { id, path } of spec.disks) await folder.link(diskLink(id), path)
    const vmm = await startVmm(spec, {
      name: 'Firecracker',
      binary: OUTPUT_PROGRAM,
      args: [...outputArgs(VSOCK_SOCKET), options.binary, '--api-sock', API_SOCKET, '--enable-pci', '--level', 'Warn'],
      accelerator: 'kvm',
      folder: folder.path
    })
    undo.add(() => outputEnded(folder))
    undo.add(() => endProcess(vmm.identity))
    const client = clientOf(folder, options.timeoutMs)
    await answers(vmm, client, options.timeoutMs, signal)
    // A VMM that ends over a request says why only in its own output.
    const handle = makeHandle(DRIVER, vmm.identity, spec.directory, options.vmmVersion, facts)
    await fill(folder, client, handle).catch(async (error: unknown) => {
      await vmm.check()
      throw error
    })
    const vm = createVm(handle, { status: 'running' }, options)
    vmm.exited.then(() => vm.notice(), options.onError)
    undo.drop()
    return vm
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }
}

async function answers (vmm: Vmm, client: RestClient, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    signal?.throwIfAborted()
    await vmm.check()
    if (performance.now() > deadline) throw LaunchFailed(`Firecracker did not answer within ${timeoutMs} ms: ${await vmm.lastWords()}`)
    try {
      await client.ask('GET', '/version', undefined, Math.max(1, Math.ceil(deadline - performance.now())))
      return
    } catch (error) {
      if (!mayListenLater(error)) throw error
    }
    // Polled, since no event tells of it: the socket's name appears before anyone listens.
    await sleep(CONNECT_PAUSE_MS)
  }
}

async function send (client: RestClient, requests: readonly Request[], timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (const { method, path, body } of requests) {
    signal?.throwIfAborted()
    await client.ask(method, path, body, timeoutMs)
  }
}
