// What happens to volumes when an instance is copied.
//
// A writable volume has one writer. So nothing may be made that would be a second one: neither a fork, nor a memory image that somebody could go on from after the volume
// has changed. A volume that is only read gets one more reader. What was written to an overlay is a part of the instance's disk, and is copied with it.
import { BerthError } from '../../../core/errors/define.ts'
import { InvalidState } from '../../../core/errors/common.ts'
import type { BaseContext } from '../context.ts'
import type { CopyWay } from '../contract.ts'
import { VolumesDiffer, WritableVolume } from '../errors.ts'
import type { InstanceRecord, InstanceSpec, VolumeSpec } from '../model/record.ts'
import { volumesOf, withVolumes } from './spec.ts'

/** @throws not_supported naming the volume that has one writer */
export function requireReaders (call: string, spec: InstanceSpec): void {
  const writable = volumesOf(spec).find(({ readonly }) => !readonly)
  if (writable !== undefined) throw WritableVolume(call, writable.volumeId, writable.mountPath)
}

/** @throws invalid_state while a volume is being attached or detached, as after a crash in the middle of that */
export function requireSettledVolumes (call: string, { name, spec }: Pick<InstanceRecord, 'name' | 'spec'>): void {
  const pending = volumesOf(spec).find((volume) => volume.pending !== undefined)
  if (pending !== undefined) throw InvalidState(`${call}: volume ${pending.volumeId} of instance ${name} is being ${pending.pending === 'attaching' ? 'attached' : 'detached'}`)
}

/**
 * The spec for an instance that is made of a copy. Without the memory, the instance takes the volumes as they are now. With the memory, they must be as they were, which is checked once they are
 * attached. @throws conflict naming a volume that is gone
 */
export async function volumesForCopy (context: BaseContext, spec: InstanceSpec, { call, withMemory }: CopyWay): Promise<InstanceSpec> {
  requireReaders(call, spec)
  const volumes = []
  for (const volume of volumesOf(spec)) {
    const generation = await generationOf(context, call, volume)
    volumes.push(withMemory ? volume : { ...volume, generation })
  }
  return withVolumes(spec, volumes)
}

async function generationOf ({ volumes }: BaseContext, call: string, { volumeId, owner }: VolumeSpec): Promise<number> {
  try {
    return (await volumes?.find(volumeId, owner))?.generation ?? 0
  } catch (error) {
    if (error instanceof BerthError && error.kind === 'not-found') throw VolumesDiffer.from(error, call, `volume ${volumeId}, which was attached, does not exist any more`)
    throw error
  }
}

/**
 * The volumes of an instance that is taken back to a copy of it: it keeps those that it has now, since a disk of an earlier time says nothing about them.
 * @throws conflict unless those of the copy fit: all of them with its memory, and those with overlays in any case, since these are a part of the disk
 */
export function volumesForReplacement (now: InstanceSpec, then: InstanceSpec, { call, withMemory }: CopyWay): InstanceSpec {
  const essence = (volumes: readonly VolumeSpec[]): string => JSON.stringify(volumes.map(({ volumeId, mountPath, readonly, overlayBytes, place, generation }) =>
    [volumeId, mountPath, readonly, overlayBytes, place, generation]).sort())
  const overlays = (spec: InstanceSpec): string => JSON.stringify(volumesOf(spec).filter(({ overlayBytes }) => overlayBytes !== undefined)
    .map(({ volumeId, overlayBytes }) => [volumeId, overlayBytes]).sort())
  if (withMemory) requireReaders(call, then)
  if (withMemory && essence(volumesOf(now)) !== essence(volumesOf(then))) throw VolumesDiffer(call, 'the instance has other volumes now than those that its memory knows, or they were written since')
  if (overlays(now) !== overlays(then)) throw VolumesDiffer(call, 'the instance has other volumes with an overlay now than it had then')
  return withVolumes(then, volumesOf(now))
}
