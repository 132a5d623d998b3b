// Takes a volume away from an instance that runs or is stopped.
import { NotFound } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { requireActive } from '../copies/rules.ts'
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { VolumeSpec } from '../model/record.ts'
import { requireVolumes } from './resolve.ts'
import { requireSettledVolumes } from './rules.ts'
import { volumesOf } from './spec.ts'
import { forgetVolume, saveVolume, unplugVolume } from './take-away.ts'

const CALL = 'detach volume'

/**
 * Needs the lock of the instance. A guest that uses the volume keeps it. Killed between any two steps, the next start of the server goes on with it, or leaves the volume
 * attached if the guest has begun to use it.
 */
export async function detachVolume (context: Context, instance: LiveInstance, ref: string): Promise<void> {
  requireActive(CALL, instance, ['Running', 'Stopped'])
  requireSettledVolumes(CALL, instance.record)
  const volume = await find(context, instance, ref)
  const { session } = instance
  if (session === undefined) return await forgetVolume(context, instance, volume)
  await saveVolume(instance, volume.volumeId, { ...volume, pending: 'detaching' })
  try {
    await unplugVolume(context, instance, session, volume)
  } catch (error) {
    // When the VM has ended meanwhile, the volume is gone from the guest all the same.
    if (session.vm.state.status !== 'gone') {
      await saveVolume(instance, volume.volumeId, volume)
      throw error
    }
    await instance.settling
  }
  await forgetVolume(context, instance, volume)
}

async function find (context: Context, instance: LiveInstance, ref: string): Promise<VolumeSpec> {
  const own = volumesOf(instance.record.spec).filter(({ owner }) => owner === undefined)
  const byId = own.find(({ volumeId }) => volumeId === ref)
  if (byId !== undefined) return byId
  const named = await idOf(context, ref)
  const found = own.find(({ volumeId }) => volumeId === named)
  if (found === undefined) throw NotFound(`volume of instance ${instance.name}:`, ref)
  return found
}

async function idOf (context: Context, ref: string): Promise<string | undefined> {
  try {
    return (await requireVolumes(context).find(ref)).id
  } catch (error) {
    if (error instanceof BerthError && error.kind === 'not-found') return undefined
    throw error
  }
}
