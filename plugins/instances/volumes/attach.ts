// Gives an instance another volume: one that runs sees it at once, one that is stopped at its next start.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import { requireActive } from '../copies/rules.ts'
import { identityOf, type Context } from '../context.ts'
import { AgentUnavailable, HotplugUnsupported, VolumeChanged, VolumeMountFailed } from '../errors.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { VolumeSpec } from '../model/record.ts'
import type { VolumeAttachment } from '../model/request.ts'
import { checkHypervisor } from '../validate/plugins.ts'
import { MAX_DEVICES } from '../validate/volumes.ts'
import { giveBack, giveBackLater } from './give-back.ts'
import { requireVolumes } from './resolve.ts'
import { requireSettledVolumes } from './rules.ts'
import { claimOf, diskOf, freePlace, mountOf, volumesOf } from './spec.ts'
import { forgetVolume, saveVolume, unplugVolume } from './take-away.ts'

const CALL = 'attach volume'
const GUEST_WAIT_MS = 5000

/** Needs the lock of the instance. Killed between any two steps, the next start of the server takes the volume away again, or leaves it if the guest has begun to use it. */
export async function attachVolume (context: Context, instance: LiveInstance, ref: string, { mountPath, readonly }: VolumeAttachment): Promise<void> {
  const service = requireVolumes(context)
  requireActive(CALL, instance, ['Running', 'Stopped'])
  requireSettledVolumes(CALL, instance.record)
  const volume = await plan(context, instance, ref, mountPath, readonly)
  const undo = createUndo()
  try {
    await attachRow(context, instance, volume)
    undo.add(async () => {
      await nowOrLater(async () => { await giveBack(context, instance, volume.volumeId) }, () => { giveBackLater(context, instance, volume.volumeId) })
    })
    const { generation, name } = await service.find(volume.volumeId)
    if (generation !== volume.generation) throw VolumeChanged(name)
    const { session } = instance
    if (session === undefined) await saveVolume(instance, volume.volumeId, volume)
    else await plugIn(context, instance, session, volume, undo)
    undo.drop()
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, instance: instance.id, volume: volume.volumeId }, 'a step of a failed attachment could not be taken back')
    throw error
  }
}

/** When it fails the volume may be attached all the same: that may have been stored, and the answer lost. When it is refused, whatever the instance has of the volume is somebody's. */
async function attachRow (context: Context, instance: LiveInstance, volume: VolumeSpec): Promise<void> {
  try {
    await requireVolumes(context).attach(instance.id, [claimOf(volume)])
  } catch (error) {
    if (!(error instanceof BerthError)) giveBackLater(context, instance, volume.volumeId)
    throw error
  }
}

async function plan (context: Context, instance: LiveInstance, ref: string, mountPath: string, readonly: boolean): Promise<VolumeSpec> {
  const volumes = volumesOf(instance.record.spec)
  if (volumes.some((other) => other.mountPath === mountPath)) throw InvalidRequest(`mount_path: ${mountPath} is used by another volume of instance ${instance.name}`)
  // A guest that boots mounts the outer one first, whatever their order here.
  const inner = instance.session === undefined ? undefined : volumes.find((other) => other.mountPath.startsWith(`${mountPath}/`))
  if (inner !== undefined) throw InvalidRequest(`mount_path: ${mountPath} would hide the volume that instance ${instance.name} has at ${inner.mountPath}; detach that one first, or stop the instance`)
  // One that cannot have any would never start with it.
  checkHypervisor({ volumes }, instance.record.spec.hypervisor, context)
  const devices = volumes.reduce((sum, { overlayBytes }) => sum + (overlayBytes === undefined ? 1 : 2), 1)
  if (devices > MAX_DEVICES) throw InvalidRequest(`${CALL}: the volumes of instance ${instance.name} would need ${devices} disks; a VM takes at most ${MAX_DEVICES}`)
  const { id, generation } = await requireVolumes(context).find(ref)
  return { volumeId: id, mountPath, readonly, place: freePlace(volumes), generation: readonly ? generation : generation + 1 }
}

async function plugIn (context: Context, instance: LiveInstance, session: GuestSession, volume: VolumeSpec, undo: Undo): Promise<void> {
  const { vm } = session
  if (vm.plugDisk === undefined) throw HotplugUnsupported(CALL, instance.record.spec.hypervisor)
  const path = await requireVolumes(context).open(instance.id, claimOf(volume), identityOf(context, instance.record))
  await saveVolume(instance, volume.volumeId, { ...volume, pending: 'attaching' })
  // From now on the volume is given back only when the VM has certainly let go of it. What cannot be done now is done at the end of the VM, or at the next start of the server.
  undo.drop()
  undo.add(async () => {
    if (vm.state.status !== 'gone') await unplugVolume(context, instance, session, volume)
    await instance.settling
    await forgetVolume(context, instance, volume)
  })
  await vm.plugDisk(diskOf(volume, path))
  await mount(context, instance, session, volume)
  await saveVolume(instance, volume.volumeId, volume)
}

async function mount (context: Context, instance: LiveInstance, session: GuestSession, volume: VolumeSpec): Promise<void> {
  const link = await session.awaitLink(GUEST_WAIT_MS, context.closing.signal)
  if (link === undefined) throw AgentUnavailable(instance.name)
  try {
    await link.mount(mountOf(volume))
  } catch (error) {
    if (isLoss(error)) throw AgentUnavailable.from(error, instance.name)
    throw isRefusal(error) ? VolumeMountFailed.from(error, volume.volumeId, error.message) : error
  }
}
