// Brings a VM up, by booting it or by restoring it from a memory image. Undoes everything when that fails.
import { stat } from 'node:fs/promises'
import type { MemoryImage, RestoreOptions, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { endProcess } from '../../core/process/end.ts'
import { createUndo } from '../../core/undo.ts'
import { buildArgs, hasBalloon, hotplugMibOf, kernelArguments, memoryFileBytes, wholeBytesOf } from './args.ts'
import { createBalloon } from './balloon.ts'
import { announceDisks } from './disks.ts'
import { q35 } from './board.ts'
import type { QmpClient } from './client.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import { makeHandle, type ImageFacts } from './handle.ts'
import { holding } from '../../core/library/vmm/held-memory.ts'
import { fillMemory, lending } from '../../core/library/vmm/private-memory.ts'
import { checkNamespace } from '../../core/library/vmm/network.ts'
import { checkState, loadState, readonlyPrivate } from './restore.ts'
import { folderOf } from './run-folder.ts'
import { checkVersion } from '../../core/library/vmm/other-version.ts'
import { checkImage, keyOf } from '../../core/library/vmm/shape.ts'
import { IMAGE_VERSION, shapeOf, type ShapeOptions } from './shape.ts'
import { startVmm, type Vmm } from '../../core/library/vmm/start.ts'
import { explainTap } from './network.ts'
import { openControl, type StartOptions } from './start.ts'
import { QemuVm, type VmOptions } from './vm.ts'

export interface LaunchOptions extends StartOptions, ShapeOptions, VmOptions {}

/** The differences between booting and restoring. */
interface Way {
  readonly args: readonly string[]
  readonly facts: ImageFacts
  /** a file that the VMM is lent */
  readonly base?: string
  /** the saved state that `wake` has it load */
  readonly statePath?: string
  /** Lets the guest run on a VMM that starts paused; absent when the guest runs by itself. */
  readonly wake?: (vmm: Vmm, qmp: QmpClient, handle: VmHandle) => Promise<void>
}

/** The driver's `launch`, once it is known how guest instructions run. */
export async function launchVm (spec: VmSpec, options: LaunchOptions, signal?: AbortSignal): Promise<QemuVm> {
  // Devices of the host need memory that QEMU has allocated itself.
  const holdsMemory = spec.memory === undefined && (spec.devices ?? []).length === 0
  const args = buildArgs(spec, { ...options, holdsMemory })
  signal?.throwIfAborted()
  if (spec.memory !== undefined) await checkMemoryFile(spec, [0, memoryFileBytes(spec)])
  const shape = await shapeOf(spec, options)
  return await bringUp(spec, options, { args, facts: factsOf(spec, keyOf(shape, kernelArguments(spec, options)), shape, holdsMemory) }, signal)
}

/** The driver's `imaging.restore`. */
export async function restoreVm (asked: VmSpec, image: MemoryImage, statePath: string, options: LaunchOptions, { signal, beforeRun, memoryFilled, otherDisks = [] }: RestoreOptions = {}): Promise<QemuVm> {
  const spec = await fittingBalloon(asked, image, options)
  if (spec.memory === undefined) throw SpecInvalid('a VM is restored on a memory file, and it names none')
  const isLent = spec.memory.sharing === 'private' && readonlyPrivate(options.vmmVersion)
  const { path, changes } = spec.memory
  if ((image.changes === true) !== (changes !== undefined)) throw SpecInvalid(`its image ${image.changes === true ? 'has' : 'has no'} changes of a memory file`)
  if (changes !== undefined && !isLent) throw SpecInvalid('changes belong to private memory, which this QEMU cannot map of a file that is only read')
  const args = buildArgs(spec, options, { readonlyPrivate: readonlyPrivate(options.vmmVersion) })
  signal?.throwIfAborted()
  const shape = await shapeOf(spec, options)
  checkImage(image, { driver: driverOf(options), version: IMAGE_VERSION }, shape)
  await checkState(image, statePath)
  await checkMemoryFile(spec, [memoryFileBytes(spec)])
  const wake = async (vmm: Vmm, qmp: QmpClient, handle: VmHandle): Promise<void> => {
    // The state of the devices is checked against what the guest's memory says of their queues. Before it, a QEMU that waits for a state touches no memory.
    await memoryFilled
    // Before the devices, which look into the memory.
    if (changes !== undefined) await fillMemory(options.commands, { pid: vmm.identity.pid, base: path, bytes: memoryFileBytes(spec) }, changes, { timeoutMs: options.imageTimeoutMs, ...signal === undefined ? {} : { signal } })
    await loadState(vmm, qmp, options.imageTimeoutMs, signal)
    await announceDisks(qmp, otherDisks)
    await beforeRun?.(handle)
    await Promise.all([
      // The captured VM's balloon target no longer applies. Asked for first: between the steps of a VM that runs, QEMU finds less time for it.
      ...hasBalloon(spec) ? [createBalloon(wholeBytesOf(spec), () => qmp).aim(wholeBytesOf(spec))] : [],
      qmp.execute('cont', {}, options.imageTimeoutMs)
    ])
  }
  const base = isLent ? path : undefined
  // Plugged memory is in no file, and so in a state that QEMU itself writes.
  const facts = { ...factsOf(spec, image.key, shape), ...base === undefined || hotplugMibOf(spec) > 0 ? {} : { memoryBase: base } }
  return await bringUp(spec, options, { args, facts, wake, statePath, ...base === undefined ? {} : { base } }, signal)
}

/** A VM that was captured before there were balloons continues without one: its guest knows of none. */
async function fittingBalloon (spec: VmSpec, image: MemoryImage, options: LaunchOptions): Promise<VmSpec> {
  if (!hasBalloon(spec)) return spec
  const without = { ...spec, balloon: false }
  return image.shape['devices'] === (await shapeOf(without, options))['devices'] ? without : spec
}

async function bringUp (spec: VmSpec, options: LaunchOptions, { args, facts, wake, statePath, base }: Way, signal: AbortSignal | undefined): Promise<QemuVm> {
  if (spec.network !== undefined) await checkNamespace(spec.network)
  const folder = folderOf(spec.directory)
  await folder.reclaim()
  const undo = createUndo()
  try {
    await folder.make(spec.identity)
    undo.add(() => { folder.remove() })
    const { binary, accelerator } = options
    const vmm = await startVmm(spec, { name: 'QEMU', binary, args, accelerator, folder: folder.path, within: base !== undefined ? lending(base) : facts.holdsMemory === true ? holding(memoryFileBytes(spec)) : [], ...statePath === undefined ? {} : { files: [statePath] }, explainTap })
    undo.add(() => endProcess(vmm.identity))
    const qmp = await openControl(vmm, spec, { timeoutMs: options.timeoutMs, running: wake === undefined, signal })
    undo.add(() => qmp.close())
    checkVersion(qmp.version, options)
    const handle = makeHandle({ driver: driverOf(options), process: vmm.identity, directory: spec.directory, vmmVersion: qmp.version, image: facts, balloonBytes: hasBalloon(spec) && base === undefined ? wholeBytesOf(spec) : undefined })
    await wake?.(vmm, qmp, handle)
    const vm = new QemuVm(handle, { status: 'running' }, options, qmp)
    vmm.exited.then(() => vm.notice(), options.onError)
    undo.drop()
    return vm
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }
}

function driverOf ({ board = q35 }: LaunchOptions): string {
  return board.driver
}

function factsOf (spec: VmSpec, key: string, shape: ImageFacts['shape'], holdsMemory = false): ImageFacts {
  const { memory, vcpus, memoryBytes, hotplugBytes } = spec
  return { key, shape, vcpus, memoryBytes, ...hotplugBytes === undefined ? {} : { hotplugBytes }, ...memory?.sharing === 'shared' ? { memoryFile: memory.path } : {}, ...holdsMemory ? { holdsMemory } : {} }
}

/** QEMU would make a missing file as the wrong user, and a file of another size belongs to another VM. */
async function checkMemoryFile ({ memory }: VmSpec, sizes: readonly number[]): Promise<void> {
  if (memory === undefined) return
  const found = await stat(memory.path)
  if (!found.isFile() || !sizes.includes(found.size)) throw SpecInvalid(`the memory file ${memory.path} has ${found.size} bytes, and must have ${sizes.join(' or ')}`)
  // The other names of the file would belong to other images.
  if (memory.sharing === 'shared' && found.nlink !== 1) throw SpecInvalid(`the memory file ${memory.path} would be written, and has ${found.nlink} names`)
}
