// A clone of a template that was started and is paused where its guest waits for a workload. It lacks only a name and disks to be an instance.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Vm, VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { withRoom } from '../../../core/fs/with-room.ts'
import { createUndo } from '../../../core/undo.ts'
import { identityOf, type BaseContext } from '../context.ts'
import { giveFile, makeOverlay, syncFiles } from '../folder/files.ts'
import { kernelHeadersOf } from '../guest/kernel-headers.ts'
import { kindOf } from '../memory-image/keep.ts'
import { allDone } from '../operations/insert.ts'
import { sharedMemory } from '../memory-image/sharing.ts'
import { driverOf, vmSpecOf } from '../operations/launch.ts'
import { withBandwidthShare } from '../parts/bandwidth.ts'
import type { Hidden, Spare, SpareDisks } from '../spares/contract.ts'
import { makeHidden } from '../spares/hidden.ts'
import { linkToPhase } from '../spares/link-to-phase.ts'
import { rehearse } from '../spares/rehearsal.ts'
import { endWith, orTakeBack, SpareVm } from '../spares/spare-vm.ts'
import type { Template } from './contract.ts'
import type { TemplateFiles, TemplatePaths } from './paths.ts'
import { hiddenSpec } from './shape.ts'

/** size of the disk that stands for the writable disk in a rehearsal; nothing is kept on it */
const REHEARSAL_BYTES = 16 * 2 ** 20

export interface TemplateSource { readonly template: Template, readonly files: TemplateFiles }

export interface SpareOptions {
  /** size of the writable disk that is made for it ahead */
  readonly overlayBytes: number
  /** whether the guest goes through the start of a program once, so that the real start is quicker */
  readonly rehearse: boolean
}

/** The disks of the rehearsal, until those of an instance take their place. */
class StageDisks implements SpareDisks {
  readonly #context: BaseContext
  readonly #vm: Vm
  readonly #hidden: Hidden
  #overlayBytes: number
  /** paths of the disks that have replaced those of the rehearsal, by id */
  readonly #disks = new Map<string, string>()

  constructor (context: BaseContext, vm: Vm, hidden: Hidden, overlayBytes: number) {
    this.#context = context
    this.#vm = vm
    this.#hidden = hidden
    this.#overlayBytes = overlayBytes
  }

  async put (rootfs: string, overlayBytes: number): Promise<void> {
    if (this.#overlayBytes !== overlayBytes) await this.#makeOverlay(overlayBytes)
    await this.putOverlay()
    await this.#replace('root', rootfs)
  }

  /** Gives the VM the writable disk that it will most probably need. Does nothing where the driver cannot replace disks. */
  async putOverlay (): Promise<void> {
    if (this.#vm.replaceDisk !== undefined) await this.#replace('overlay', this.#hidden.paths.overlay)
  }

  async #replace (id: string, path: string): Promise<void> {
    if (this.#disks.get(id) === path) return
    if (this.#vm.replaceDisk === undefined) throw new Error('the driver cannot replace disks')
    await this.#vm.replaceDisk(id, path)
    this.#disks.set(id, path)
  }

  async #makeOverlay (bytes: number): Promise<void> {
    const { paths, record } = this.#hidden
    this.#disks.delete('overlay')
    // A new file: the VM may still have the old one open.
    await rm(paths.overlay)
    await makeOverlay(paths.overlay, bytes, identityOf(this.#context, record), this.#context.commands)
    await syncFile(paths.overlay)
    await syncFolder(paths.directory)
    this.#overlayBytes = bytes
  }
}

/** Undefined when no user is left for it. Leaves nothing behind when it rejects. @throws DiskShort */
export async function makeSpare (context: BaseContext, paths: TemplatePaths, source: TemplateSource, options: SpareOptions, signal: AbortSignal): Promise<Spare | undefined> {
  return await withRoom(context.disk, [signal], async (either) => await make(context, paths, source, options, either))
}

async function make (context: BaseContext, paths: TemplatePaths, source: TemplateSource, options: SpareOptions, signal: AbortSignal): Promise<Spare | undefined> {
  const { template, files } = source
  signal.throwIfAborted()
  const undo = createUndo()
  return await orTakeBack(context, undo, async () => {
    // Connected like an instance that names no bandwidth, since most spare VMs become such an instance.
    const hidden = await makeHidden(context, withBandwidthShare(context, hiddenSpec(template, options.overlayBytes)))
    if (hidden === undefined) return undefined
    undo.add(hidden.remove)
    const memory = await fill(context, hidden, files, options, signal)
    const vm = await restore(context, paths, source, { hidden, memory }, signal)
    const imaging = endWith(undo, vm)
    // The VM has the file open, and nobody else is to open it.
    await rm(rehearsalPath(hidden))
    const link = await linkToPhase(context.guest, vm, 'waiting', signal)
    undo.add(() => { link.close() })
    if (options.rehearse && driverOf(context, hidden.record).imaging?.disksStayBound !== true) {
      await rehearse(context, { link, hidden }, kernelHeadersOf(hidden.record.spec), signal)
      context.provenImages.add(kindOf(template))
    }
    const disks = new StageDisks(context, vm, hidden, options.overlayBytes)
    // Before the disks: a guest that runs must not have its driver on one that is replaced.
    await imaging.pause()
    await disks.putOverlay()
    return new SpareVm(context, { key: template.key, vm, imaging, link, hidden, disks }, undo)
  })
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

async function restore (context: BaseContext, paths: TemplatePaths, { template, files }: TemplateSource, { hidden, memory }: { readonly hidden: Hidden, readonly memory: VmMemoryFile }, signal: AbortSignal): Promise<Vm> {
  const { imaging } = driverOf(context, hidden.record)
  if (imaging === undefined) throw new Error('the driver makes no memory images')
  const spec = await vmSpecOf(context, hidden.record, { rootfs: paths.root }, hidden.connection)
  const disks = spec.disks.map((disk) => disk.id === 'overlay' ? { ...disk, path: rehearsalPath(hidden) } : disk)
  return await imaging.restore({ ...spec, disks, memory }, template.image, files.state, { signal })
}

function rehearsalPath ({ paths }: Hidden): string {
  return join(paths.directory, 'rehearsal.ext4')
}
