// At the start of the server: makes what standbys, restores and forks have left agree with what is stored, at whatever step a crash has cut them off.
import type { Vm, VmHandle } from '../../../core/library/hypervisor.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { compressLater } from '../compression/compress-image.ts'
import { tidyImage } from '../compression/compressed-image.ts'
import { pathsIn, type Context } from '../context.ts'
import { dropCaptured, dropKept, dropMemory, hasUnfinishedImage, isImageOf, isLost, readImage, readUsable, takenAt, takerOf, type Remains, type StoredImage } from './files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logOperation } from '../folder/operations-log.ts'
import { hostClock } from '../life/moment.ts'
import type { InstancePaths } from '../folder/paths.ts'
import { withPhase } from '../phases/phase.ts'
import type { InstanceRecord } from '../model/record.ts'
import { dropWhenAwake } from '../operations/awake.ts'
import { endFormerVm } from '../operations/end-former-vm.ts'
import { hasLivedOn, proveImage, putBack } from './keep.ts'
import { lostMemory, restoredPatch } from '../operations/restore.ts'
import { storeStandby } from '../operations/standby.ts'
import { settleImage } from './sync.ts'

/**
 * For an instance without a VM, which is in standby if its image is whole. Processes that a restore left that was cut off are gone by now.
 * @param remains what is in its folder, when that is known
 */
export async function adoptStandby (context: Context, instance: LiveInstance, remains?: Remains): Promise<void> {
  const paths = pathsIn(context, instance.id)
  if (instance.record.standbyAt === null) {
    if (remains === undefined || remains.memory || remains.kept || remains.image.size > 0) await dropMemory(paths)
    return
  }
  const stored = await imageInStandby(context, instance, paths)
  if (stored !== undefined && !isLost(stored)) {
    if (remains?.kept !== false) await dropKept(paths)
    if (stored.problem !== undefined) instance.setImageProblem(stored.problem)
    await tidyImage(paths, stored)
    if (stored.bootId !== null) settleImage(context, instance)
    else compressLater(context, instance, stored)
    return
  }
  const why = stored === undefined ? 'a restore of it was cut off after the VM had begun to run' : 'the host went down before its memory image was on disk'
  const patch = lostMemory(instance.record, why)
  await instance.save(patch)
  await dropMemory(paths)
  await logOperation(paths.operations, `start of the server: ${patch.exit?.exitMessage ?? ''}`, context.log)
}

/** The whole image. An image that was taken but not used is given back first, and the kept copy of one that was used takes its place. */
async function imageInStandby (context: Context, instance: LiveInstance, paths: InstancePaths): Promise<StoredImage | undefined> {
  const usable = await readUsable(paths)
  if (usable !== undefined) return usable
  if (await readImage(paths, 'taken') === undefined) return undefined
  if (await hasLivedOn(paths, await takenAt(paths))) return undefined
  if (!await putBack(context, instance, 'the server ended while its VM was started on it')) return undefined
  return await readImage(paths, 'whole')
}

/** The record, with the VM of a restore that was cut off when that VM had all of its state: it runs, or is about to. All other records stay as they are. */
export async function withTaker (context: Context, record: InstanceRecord): Promise<InstanceRecord> {
  if (record.status !== 'active' || record.handle !== null || record.standbyAt === null) return record
  const paths = pathsIn(context, record.id)
  const handle = await takerOf(paths)
  const vm = handle === undefined ? undefined : await context.hypervisors.get(handle.driver)?.attach(handle)
  vm?.release()
  if (handle === undefined || vm === undefined || vm.state.status === 'gone') return record
  const stored = await context.repository.update(record, withPhase(record, restoredPatch(record, handle, await takenAt(paths) ?? Date.now()), hostClock))
  await logOperation(paths.operations, 'start of the server: took over the VM of a restore that was cut off', context.log)
  return stored
}

/** Finishes a standby whose image is whole. Returns false when there is none for this VM. */
export async function finishStandby (context: Context, instance: LiveInstance, handle: VmHandle): Promise<boolean> {
  const paths = pathsIn(context, instance.id)
  const stored = await readImage(paths, 'whole')
  if (stored === undefined || !isImageOf(stored, handle) || isLost(stored)) return false
  await endFormerVm(context, handle)
  await storeStandby(context, instance, Date.parse(stored.image.capturedAt))
  await logOperation(paths.operations, 'start of the server: finished a standby that was cut off', context.log)
  // The image is not compressed yet: compression comes after the steps that were just finished.
  if (stored.bootId !== null) settleImage(context, instance)
  else compressLater(context, instance, stored)
  return true
}

/** The image that the VM of an instance was started on, when its guest may not have been woken yet. */
export async function takenImage (context: Context, instance: LiveInstance): Promise<StoredImage | undefined> {
  return await readImage(pathsIn(context, instance.id), 'taken')
}

/** Lets a VM go on that a standby or a fork was about to capture, or that a restore was about to start. Removes what these have left once its guest is awake. */
export async function goOn (context: Context, instance: LiveInstance, vm: Vm, session: GuestSession): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const isCutOff = await hasUnfinishedImage(paths)
  const taken = await takenImage(context, instance)
  if (isCutOff || taken !== undefined) await vm.imaging?.resume()
  // The file may be as large as the guest's memory, and the next standby may be far away.
  if (isCutOff && vm.imaging !== undefined && vm.imaging.memoryFile === undefined) await dropCaptured(paths)
  const isUnproven = taken !== undefined && !session.proven && await isThere(paths.kept.whole)
  dropWhenAwake(context, instance, session, isUnproven ? proveImage(context, session, taken) : undefined)
}
