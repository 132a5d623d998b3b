// Takes a volume away from an instance: from its guest, its VM, its row, and last from the attached volumes. Each step can be repeated.
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import type { Context } from '../context.ts'
import { AgentUnavailable, HotplugUnsupported, VolumeBusy } from '../errors.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { VolumeSpec } from '../model/record.ts'
import { giveBack, giveBackLater } from './give-back.ts'
import { diskOf, mountOf, overlayDiskOf, volumesOf, withVolumes } from './spec.ts'

const GUEST_WAIT_MS = 5000
const EBUSY = 16

/** Stores what is known of one volume; absent: removes it from the row. */
export async function saveVolume (instance: LiveInstance, volumeId: string, volume: VolumeSpec | undefined): Promise<void> {
  const { spec } = instance.record
  const others = volumesOf(spec).filter((other) => other.volumeId !== volumeId)
  await instance.save({ spec: withVolumes(spec, volume === undefined ? others : [...others, volume]) })
}

/** Has the guest let go of the volume, and the VMM close its files. Does nothing where they do not have it. @throws VolumeBusy with everything as before, AgentUnavailable */
export async function unplugVolume (context: Context, instance: LiveInstance, session: GuestSession, volume: VolumeSpec): Promise<void> {
  const { vm } = session
  if (vm.unplugDisk === undefined) throw HotplugUnsupported('detach volume', instance.record.spec.hypervisor)
  const link = await session.awaitLink(GUEST_WAIT_MS, context.closing.signal)
  if (link === undefined) throw AgentUnavailable(instance.name)
  try {
    await link.unmount(mountOf(volume))
  } catch (error) {
    if (isLoss(error)) throw AgentUnavailable.from(error, instance.name)
    if (isRefusal(error)) throw VolumeBusy.from(error, volume.volumeId, error.errno === EBUSY ? error.message : `the guest cannot let go of it: ${error.message}`)
    throw error
  }
  if (volume.overlayBytes !== undefined) await vm.unplugDisk(overlayDiskOf(volume, '').id)
  await vm.unplugDisk(diskOf(volume, '').id)
}

/** To be called when no VM has the volume any more. */
export async function forgetVolume (context: Context, instance: LiveInstance, { volumeId }: VolumeSpec): Promise<void> {
  await saveVolume(instance, volumeId, undefined)
  // From here on a caller who tries again is told that there is no such volume.
  await nowOrLater(async () => { await giveBack(context, instance, volumeId) }, () => { giveBackLater(context, instance, volumeId) })
}
