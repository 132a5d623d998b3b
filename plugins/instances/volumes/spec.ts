// What is stored of the volumes of an instance: made of a request, and turned into disks, mounts and answers. Pure.
import type { VmDisk } from '../../../core/library/hypervisor.ts'
import { formatSize } from '../../../core/units.ts'
import type { GuestMount } from '../../guest/contract.ts'
import type { VolumeClaim } from './contract.ts'
import type { InstanceRecord, InstanceSpec, VolumeSpec } from '../model/record.ts'
import type { InstanceView } from '../api/schemas.ts'

/** the places on the bus; a volume takes two, one for its overlay */
const MAX_PLACES = 32

export function volumesOf ({ volumes = [] }: Pick<InstanceSpec, 'volumes'>): readonly VolumeSpec[] {
  return volumes
}

/** The spec with these volumes in place of those that it has. */
export function withVolumes (spec: InstanceSpec, volumes: readonly VolumeSpec[]): InstanceSpec {
  const { volumes: _, ...others } = spec
  return volumes.length === 0 ? others : { ...others, volumes }
}

/** A place that no volume of the instance has. */
export function freePlace (volumes: readonly Pick<VolumeSpec, 'place'>[]): number {
  const taken = new Set(volumes.map(({ place }) => place))
  for (let place = 0; place < MAX_PLACES; place++) if (!taken.has(place)) return place
  throw new Error('an instance has more volumes than there are places')
}

export function claimOf ({ volumeId, mountPath, readonly }: VolumeSpec): VolumeClaim {
  return { volumeId, mountPath, readonly }
}

/** The disk of a volume in the VM. The place never changes while the instance has the volume, since it is a part of memory images. */
export function diskOf ({ place, readonly }: VolumeSpec, path: string): VmDisk {
  return { id: `volume-${place}`, path, readonly, unit: 2 * place }
}

/** The disk for writes to a volume with an overlay. */
export function overlayDiskOf ({ place }: VolumeSpec, path: string): VmDisk {
  return { id: `overlay-${place}`, path, readonly: false, unit: 2 * place + 1 }
}

/** What the guest is told of the volume. */
export function mountOf ({ place, mountPath, readonly, overlayBytes }: VolumeSpec): GuestMount {
  return {
    path: mountPath,
    device: `serial:volume-${place}`,
    readonly,
    ...(overlayBytes === undefined ? {} : { overlayDevice: `serial:overlay-${place}` })
  }
}

export function mountsOf ({ spec }: Pick<InstanceRecord, 'spec'>): readonly GuestMount[] {
  return volumesOf(spec).map(mountOf)
}

/** The volumes in the API's answer: only those of callers, and none that is still being attached. */
export function volumeViews (spec: InstanceSpec): InstanceView['volumes'] {
  return volumesOf(spec).filter(({ owner, pending }) => owner === undefined && pending !== 'attaching').map(({ volumeId, mountPath, readonly, overlayBytes }) => ({
    volume_id: volumeId,
    mount_path: mountPath,
    readonly,
    ...(overlayBytes === undefined ? {} : { overlay: true, overlay_size: formatSize(overlayBytes) })
  }))
}
