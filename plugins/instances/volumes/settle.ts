// Finishes attaching or detaching that a crash of the server, or the end of a VM, has cut off: afterwards a volume is either attached or not.
import { pathsIn, type Context } from '../context.ts'
import { VolumeBusy } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import type { VolumeSpec } from '../model/record.ts'
import { volumesOf } from './spec.ts'
import { forgetVolume, saveVolume, unplugVolume } from './take-away.ts'

function pendingOf ({ record }: LiveInstance): readonly VolumeSpec[] {
  return volumesOf(record.spec).filter(({ pending }) => pending !== undefined)
}

/**
 * At the start of the server, for an instance whose VM runs. Nobody has been told that the volume came or went, so it is taken away; if the guest uses it, it stays. Goes on by
 * itself, before anybody else changes the instance. What cannot be done stays until the VM ends.
 */
export function settleVolumes (context: Context, instance: LiveInstance): void {
  if (pendingOf(instance).length === 0) return
  context.locks.hold(instance.id, async () => {
    for (const volume of pendingOf(instance)) await settleOne(context, instance, volume)
  }).catch((error: unknown) => {
    context.log.error({ err: error, instance: instance.id }, 'a volume that was being attached or detached could not be brought in order')
  })
}

async function settleOne (context: Context, instance: LiveInstance, volume: VolumeSpec): Promise<void> {
  const { session } = instance
  // The end of the VM has settled this.
  if (session === undefined) return
  const { pending: _, ...settled } = volume
  try {
    await unplugVolume(context, instance, session, volume)
    await forgetVolume(context, instance, volume)
    await logOperation(pathsIn(context, instance.id).operations, `start of the server: volume ${volume.volumeId}, which was being attached or detached, is detached`, context.log)
  } catch (error) {
    if (!VolumeBusy.is(error)) throw error
    await saveVolume(instance, volume.volumeId, settled)
    await logOperation(pathsIn(context, instance.id).operations, `start of the server: volume ${volume.volumeId}, which was being attached or detached, is in use and stays attached`, context.log)
  }
}

/** After the end of a VM: removes volumes that were being attached or detached. */
export async function dropPending (context: Context, instance: LiveInstance): Promise<void> {
  for (const volume of pendingOf(instance)) await forgetVolume(context, instance, volume)
}
