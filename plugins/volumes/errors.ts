// The errors of the volumes plugin. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

export const VolumeExists = defineError('already_exists', 'conflict', (id: string) => `id: a volume with the id or the name ${id} exists already`)

export const VolumeNameTaken = defineError('name_conflict', 'conflict', (name: string) => `name: a volume with the name or the id ${name} exists already on this host; case makes no difference`)

/** The volume cannot be deleted. */
export const VolumeAttached = defineError('conflict', 'conflict', (name: string, instances: readonly string[]) =>
  `volume ${name} is attached to ${instances.length === 1 ? 'instance' : 'instances'} ${instances.join(', ')}; detach it first`)

/** The volume cannot be attached: one instance may write it, or any number may read it. */
export const VolumeInUse = defineError('volume_in_use', 'conflict', (name: string, why: string) => `volume ${name} cannot be attached: ${why}`)

/** The volume's journal cannot be played back, so nobody can read it safely. */
export const VolumeDamaged = defineError('volume_damaged', 'conflict', (name: string) =>
  `the file system of volume ${name} is damaged, and can only be attached for writing, so that it can be repaired in an instance`)

/** The instance has a file of its own in the place of the volume's disk. */
export const VolumeDisplaced = defineError('volume_damaged', 'conflict', (id: string, instanceId: string) =>
  `volume ${id} has two disks, as a backup was restored by an earlier version of the server: volumes/disks/${id}.img and, with what instance ${instanceId} has written since, volumes/uses/${instanceId}/${id}.img; move the right one to the first place and remove the second`)

export const ArchiveInvalid = defineError('invalid_archive', 'invalid', (why: string) => `archive: ${why}`)

export const ArchiveTooLarge = defineError('archive_too_large', 'invalid', (why: string) => `archive: ${why}`)

export const DiskFull = defineError('insufficient_resources', 'conflict', () =>
  'the disk of the data folder is full; no volume was made')
