// Spare forks of a copy: VMs that were restored on it ahead. The program of their guests stays frozen, as it was when the copy was taken, until a fork gives the machine an identity of its own; until then
// its port to the network is closed, since the guest has the address of the instance that was copied.
import { allocatedBytes } from '../../../core/fs/allocated-bytes.ts'
import type { Vm } from '../../../core/library/hypervisor.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { createUndo } from '../../../core/undo.ts'
import { pathsIn, type Context } from '../context.ts'
import type { CopyFiles, InstanceCopy } from '../contract.ts'
import { syncFiles } from '../folder/files.ts'
import { readImage } from '../memory-image/files.ts'
import type { InstanceSpec } from '../model/record.ts'
import { copyInto, restoreCopy, type ResolvedFork } from '../operations/fork.ts'
import { driverOf } from '../operations/launch.ts'
import { closePort } from '../parts/address.ts'
import type { Hidden, Spare, SpareSource } from '../spares/contract.ts'
import { makeHidden } from '../spares/hidden.ts'
import { linkToPhase } from '../spares/link-to-phase.ts'
import { rehearse, RehearsalFailed } from '../spares/rehearsal.ts'
import { endWith, orTakeBack, SpareVm } from '../spares/spare-vm.ts'
import { volumesOf } from '../volumes/spec.ts'

/** A copy with memory. */
interface Original {
  readonly key: string
  readonly files: CopyFiles
  readonly fork: Pick<ResolvedFork, 'plan' | 'image'>
}

/** A copy is known by the place of its files, which are what they are until it is forgotten. */
export function spareForkKey ({ state }: Pick<CopyFiles, 'state'>): string {
  return `copy ${state}`
}

/** What spare VMs of a copy are made of; undefined when a VM made ahead cannot become such a fork. */
export function spareForksOf (context: Context, { memory }: InstanceCopy, files: CopyFiles, fork: ResolvedFork): SpareSource | undefined {
  const { plan: { spec } } = fork
  if (!context.settings.templates.enabled || memory === undefined || !canWait(context, spec)) return undefined
  const key = spareForkKey(files)
  return {
    key,
    memoryBytes: spec.memoryBytes,
    diskBytes: async () => await allocatedBytes(files.overlay),
    make: async (signal) => await makeSpareFork(context, { key, files, fork }, signal)
  }
}

/** Volumes are others' as well, and what else an instance holds it gets only when it is there. */
function canWait (context: Context, spec: InstanceSpec): boolean {
  return spec.hotplugBytes === undefined && volumesOf(spec).length === 0 && !context.parts.some((part) => part.mustBoot?.(spec) === true) && driverOf(context, { spec }).imaging?.keepsPaused === true
}

/** Undefined when no user is left for it, or the copy is not there any more. Leaves nothing behind when it rejects. */
async function makeSpareFork (context: Context, original: Original, signal: AbortSignal): Promise<Spare | undefined> {
  const { key, files, fork: { plan } } = original
  signal.throwIfAborted()
  // Its memory may have been compressed meanwhile; the next fork knows where it is then.
  if (!await isThere(files.memory.path)) return undefined
  const undo = createUndo()
  return await orTakeBack(context, undo, async () => {
    const hidden = await makeHidden(context, specOfVm(plan.spec))
    if (hidden === undefined) return undefined
    undo.add(hidden.remove)
    await copyInto(context, hidden.record, plan)
    await syncFiles(hidden.paths)
    const vm = await restore(context, hidden, original, signal)
    const imaging = endWith(undo, vm)
    const link = await linkToPhase(context.guest, vm, 'asleep', signal)
    undo.add(() => { link.close() })
    await rehearse(context, { link, hidden }, { newMachine: true }, signal).catch((error: unknown) => {
      if (!(error instanceof RehearsalFailed)) throw error
      // Of a version that does not know this, perhaps; it sleeps on, and its waking takes longer.
      context.log.info({ err: error, copy: files.state }, 'the guest of a spare VM did not rehearse its waking')
    })
    await imaging.pause()
    return new SpareVm(context, { key, vm, imaging, link, hidden }, undo)
  })
}

async function restore (context: Context, { record, connection }: Hidden, { fork: { image } }: Original, signal: AbortSignal): Promise<Vm> {
  const stored = await readImage(pathsIn(context, record.id), 'whole')
  if (stored === undefined) throw new Error('the memory image of a spare VM is gone')
  return await restoreCopy(context, record, { image, stored, connection }, { signal, beforeRun: async () => { await closePort(context, record) } })
}

/** The part of the spec that the VM is made of. */
function specOfVm ({ hypervisor, vcpus, memoryBytes, overlayBytes, diskIoBps, skipGuestAgent, skipKernelHeaders, kernelHeaders, snapshotPolicy, network }: InstanceSpec): InstanceSpec {
  return {
    hypervisor,
    vcpus,
    memoryBytes,
    overlayBytes,
    env: {},
    tags: {},
    skipGuestAgent,
    skipKernelHeaders,
    ...diskIoBps === undefined ? {} : { diskIoBps },
    ...kernelHeaders === undefined ? {} : { kernelHeaders },
    ...snapshotPolicy === undefined ? {} : { snapshotPolicy },
    ...network === undefined ? {} : { network }
  }
}
