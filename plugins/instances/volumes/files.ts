// The disks of an instance's volumes, as its VM needs them.
import { join } from 'node:path'
import type { VmDisk } from '../../../core/library/hypervisor.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { identityOf, pathsIn, type BaseContext } from '../context.ts'
import type { PartInstance } from '../contract.ts'
import { giveFile, makeOverlay, type Identity } from '../folder/files.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord } from '../model/record.ts'
import { requireVolumes } from './resolve.ts'
import { makeOverlaysFolder, overlayPath, overlaysIn } from './overlays.ts'
import { claimOf, diskOf, overlayDiskOf, volumesOf } from './spec.ts'

/** Makes the disks that an instance with these volumes needs. Not synced. */
export async function makeVolumeOverlays (context: BaseContext, record: Pick<InstanceRecord, 'id' | 'slot' | 'spec'>): Promise<void> {
  const { volumes } = pathsIn(context, record.id)
  const wanted = volumesOf(record.spec).filter(({ overlayBytes }) => overlayBytes !== undefined)
  if (wanted.length === 0) return
  await makeOverlaysFolder(volumes)
  await Promise.all(wanted.map(async ({ volumeId, overlayBytes = 0 }) => {
    await makeOverlay(overlayPath(volumes, volumeId), overlayBytes, identityOf(context, record), context.commands)
  }))
}

export async function removeVolumeOverlay (context: BaseContext, { id }: Pick<InstanceRecord, 'id'>, volumeId: string): Promise<void> {
  await removeTree(overlayPath(pathsIn(context, id).volumes, volumeId))
}

/** The disks of an instance's volumes, whose files are ready for its VM. @throws plugin_disabled, volume_damaged */
export async function volumeDisks (context: BaseContext, { id, spec, user }: PartInstance): Promise<readonly VmDisk[]> {
  const disks = []
  for (const volume of volumesOf(spec)) {
    disks.push(diskOf(volume, await requireVolumes(context).open(id, claimOf(volume), user)))
    if (volume.overlayBytes !== undefined) disks.push(overlayDiskOf(volume, overlayPath(pathsIn(context, id).volumes, volume.volumeId)))
  }
  return disks
}

/** Gives copied overlays to the VM's user. */
export async function ownVolumeOverlays ({ volumes }: Pick<InstancePaths, 'volumes'>, identity: Identity | undefined): Promise<void> {
  for (const name of await overlaysIn(volumes)) await giveFile(join(volumes, name), identity)
}
