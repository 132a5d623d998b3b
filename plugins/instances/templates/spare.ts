// A clone of a template that was started and is paused where its guest waits for a workload. It lacks only a name and disks to be an instance.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Vm, VmImaging, VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { identityOf, type BaseContext } from '../context.ts'
import { giveFile, makeOverlay, syncFiles } from '../folder/files.ts'
import { isRefusal } from '../guest/guest-errors.ts'
import { kernelHeadersOf } from '../guest/kernel-headers.ts'
import { kindOf } from '../memory-image/keep.ts'
import { allDone } from '../operations/insert.ts'
import { sharedMemory } from '../memory-image/sharing.ts'
import { driverOf, vmSpecOf } from '../operations/launch.ts'
import { guestNetworkOf } from '../parts/address.ts'
import type { InstanceRecord } from '../model/record.ts'
import type { Hidden, Spare, Template } from './contract.ts'
import { makeHidden } from './hidden.ts'
import type { TemplateFiles, TemplatePaths } from './paths.ts'
import { linkToWaiting } from './waiting.ts'

/** size of the disk that stands for the writable disk in a rehearsal; nothing is kept on it */
const REHEARSAL_BYTES = 16 * 2 ** 20

export interface SpareSource { readonly template: Template, readonly files: TemplateFiles }

export interface SpareOptions {
  /** size of the writable disk that is made for it ahead */
  readonly overlayBytes: number
  /** whether the guest goes through the start of a program once, so that the real start is quicker */
  readonly rehearse: boolean
}

/** The guest cannot rehearse. Another VM may still be used without a rehearsal. */
export class RehearsalFailed extends Error {
  override readonly name = 'RehearsalFailed'
}

class SpareVm implements Spare {
  readonly key: string
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly link: GuestLink
  readonly hidden: Hidden
  readonly #context: BaseContext
  readonly #undo: Undo
  #overlayBytes: number
  /** paths of the disks that have replaced those of the rehearsal, by id */
  readonly #disks = new Map<string, string>()
  #isBroken = false

  constructor (context: BaseContext, key: string, parts: { vm: Vm, imaging: VmImaging, link: GuestLink, hidden: Hidden }, overlayBytes: number, undo: Undo) {
    this.#context = context
    this.key = key
    this.vm = parts.vm
    this.imaging = parts.imaging
    this.link = parts.link
    this.hidden = parts.hidden
    this.#overlayBytes = overlayBytes
    this.#undo = undo
    this.link.closed.then(() => { this.#isBroken = true }, () => {})
  }

  get record (): InstanceRecord { return this.hidden.record }

  get isGood (): boolean { return !this.#isBroken && this.vm.state.status === 'paused' }

  async putDisks (rootfs: string, overlayBytes: number): Promise<void> {
    if (this.#overlayBytes !== overlayBytes) await this.#makeOverlay(overlayBytes)
    await this.putOverlay()
    await this.#replace('root', rootfs)
  }

  async putOverlay (): Promise<void> {
    if (this.vm.replaceDisk !== undefined) await this.#replace('overlay', this.hidden.paths.overlay)
  }

  async end (): Promise<void> {
    for (const failure of await this.#undo.run()) this.#context.log.error({ err: failure, vm: this.record.id }, 'a spare VM could not be ended wholly')
  }

  handOver (): void {
    this.#undo.drop()
    this.#context.hidden.delete(this.record)
  }

  async #replace (id: string, path: string): Promise<void> {
    if (this.#disks.get(id) === path) return
    if (this.vm.replaceDisk === undefined) throw new Error('the driver cannot replace disks')
    await this.vm.replaceDisk(id, path)
    this.#disks.set(id, path)
  }

  async #makeOverlay (bytes: number): Promise<void> {
    const { paths, record } = this.hidden
    this.#disks.delete('overlay')
    // A new file: the VM may still have the old one open.
    await rm(paths.overlay)
    await makeOverlay(paths.overlay, bytes, identityOf(this.#context, record), this.#context.commands)
    await syncFile(paths.overlay)
    await syncFolder(paths.directory)
    this.#overlayBytes = bytes
  }
}

/** Undefined when no user is left for it. Leaves nothing behind when it rejects. */
export async function makeSpare (context: BaseContext, paths: TemplatePaths, source: SpareSource, options: SpareOptions, signal: AbortSignal): Promise<Spare | undefined> {
  const { template, files } = source
  signal.throwIfAborted()
  const undo = createUndo()
  try {
    const hidden = await makeHidden(context, template, options.overlayBytes)
    if (hidden === undefined) return undefined
    undo.add(hidden.remove)
    const memory = await fill(context, hidden, files, options, signal)
    const vm = await restore(context, paths, source, { hidden, memory }, signal)
    undo.add(async () => {
      await vm.kill()
      vm.release()
    })
    // The VM has the file open, and nobody else is to open it.
    await rm(rehearsalPath(hidden))
    const link = await linkToWaiting(context.guest, vm, signal)
    undo.add(() => { link.close() })
    const { imaging } = vm
    if (imaging === undefined) throw new Error('the driver makes no memory images of a VM that it has restored')
    if (options.rehearse && driverOf(context, hidden.record).imaging?.disksStayBound !== true) {
      await rehearse(context, link, hidden, signal)
      context.provenImages.add(kindOf(template))
    }
    const spare = new SpareVm(context, template.key, { vm, imaging, link, hidden }, options.overlayBytes, undo)
    // Before the disks: a guest that runs must not have its driver on one that is replaced.
    await imaging.pause()
    await spare.putOverlay()
    return spare
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'a step of a failed spare VM could not be taken back')
    throw error
  }
}

async function fill (context: BaseContext, hidden: Hidden, files: TemplateFiles, { overlayBytes }: SpareOptions, signal: AbortSignal): Promise<VmMemoryFile> {
  const { paths, record } = hidden
  const identity = identityOf(context, record)
  const memory = bringMemory(context, hidden, files, signal)
  await allDone([
    memory,
    makeOverlay(paths.overlay, overlayBytes, identity, context.commands),
    makeOverlay(rehearsalPath(hidden), REHEARSAL_BYTES, identity, context.commands)
  ])
  await syncFiles(paths)
  return await memory
}

async function bringMemory (context: BaseContext, { paths, record }: Hidden, { memory }: TemplateFiles, signal: AbortSignal): Promise<VmMemoryFile> {
  const shared = await sharedMemory(context, record.spec, paths, memory)
  if (shared !== undefined) return shared
  await copySparse(context.commands, memory, paths.memory, { signal })
  await giveFile(paths.memory, identityOf(context, record))
  return { path: paths.memory, sharing: 'shared' }
}

async function restore (context: BaseContext, paths: TemplatePaths, { template, files }: SpareSource, { hidden, memory }: { readonly hidden: Hidden, readonly memory: VmMemoryFile }, signal: AbortSignal): Promise<Vm> {
  const { imaging } = driverOf(context, hidden.record)
  if (imaging === undefined) throw new Error('the driver makes no memory images')
  const spec = await vmSpecOf(context, hidden.record, { rootfs: paths.root }, hidden.connection)
  const disks = spec.disks.map((disk) => disk.id === 'overlay' ? { ...disk, path: rehearsalPath(hidden) } : disk)
  return await imaging.restore({ ...spec, disks, memory }, template.image, files.state, { signal })
}

/** The VM keeps its address when it becomes an instance, so the guest has it from the rehearsal on. */
async function rehearse (context: BaseContext, link: GuestLink, { record }: Hidden, signal: AbortSignal): Promise<void> {
  const network = guestNetworkOf(context, record)
  try {
    await unlessAborted(signal, link.rehearse({ ...kernelHeadersOf(record.spec), ...network === undefined ? {} : { network } }))
  } catch (error) {
    // Any other error says nothing about guests.
    if (!isRefusal(error)) throw error
    throw new RehearsalFailed('the guest of a template could not rehearse a start', { cause: error })
  }
}

function rehearsalPath ({ paths }: Hidden): string {
  return join(paths.directory, 'rehearsal.ext4')
}
