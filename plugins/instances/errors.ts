// The errors of the instances plugin. Codes are API: they never change.
import { InvalidState, PluginDisabled } from '../../core/errors/common.ts'
import { defineError, type DeclaredError } from '../../core/errors/define.ts'
import { MemoryDamaged } from '../../core/library/compressed-memory.ts'

/** One factory for each `invalid_*` code of a field, so that the message always begins with the field's place. */
const field = (code: string) => defineError(code, 'invalid', (place: string, rule: string) => `${place}: ${rule}`)

export const InvalidSize = field('invalid_size')
export const InvalidHotplugSize = field('invalid_hotplug_size')
export const InvalidOverlaySize = field('invalid_overlay_size')
export const InvalidDiskIo = field('invalid_disk_io_bps')
export const InvalidBandwidthDownload = field('invalid_bandwidth_download')
export const InvalidBandwidthUpload = field('invalid_bandwidth_upload')
export const InvalidSnapshotPolicy = field('invalid_snapshot_policy')
export const InvalidTtl = field('invalid_ttl')
export const InvalidExpiresAt = field('invalid_expires_at')
export const InvalidRestartPolicy = field('invalid_restart_policy')
export const InvalidHealthCheck = field('invalid_health_check')
export const InvalidAutoStandby = field('invalid_auto_standby')
export const InvalidWaitState = field('invalid_state')
export const InvalidWaitTimeout = field('invalid_timeout')

/** Neither the image nor the request names a program, or the first word of what they name is empty. */
export const NothingToRun = defineError('invalid_request', 'invalid', (image: string) =>
  `cmd: with those of image ${image}, where the request gives none, entrypoint and cmd are empty together, or begin with an empty word: there is no program to run`)

/** More than a guest can be told, by what the request says alone or together with what the image brings. */
export const ProgramTooLarge = defineError('invalid_request', 'invalid', (field: 'cmd' | 'env', image: string, { bytes, most }: { readonly bytes: number, readonly most: number }) =>
  `${field}: entrypoint, cmd and env, with what image ${image} brings and paths of volumes, take ${bytes} bytes; at most ${most} fit into what a guest can be told`)

export const UnusableImage = defineError('invalid_request', 'invalid', (image: string, entry: string) =>
  `image: the configuration of image ${image} has in its ${entry} a NUL, which no program can be given`)

export const ImageMissing = defineError('image_missing', 'wrong-state', (image: string) =>
  `the content of image ${image} is no longer on this host`)

/** `skip_guest_agent` was set at creation. */
export const AgentDisabled = defineError('not_supported', 'unsupported', (what: string) =>
  `${what} does not work for this instance: it was created with skip_guest_agent, so it has no guest agent`)

/** The instance works for a plugin, and only that plugin may change it or look into it. */
export const WorkerInstance = defineError('Forbidden', 'forbidden', (call: string, name: string, plugin: string) =>
  `${call}: instance ${name} works for the plugin ${plugin}, and nobody else gets into it`)

export const AgentUnavailable = defineError('agent_unavailable', 'unavailable', (name: string) =>
  `the guest agent of instance ${name} does not answer`)

export const NameTaken = defineError('name_conflict', 'conflict', (name: string) => `name: an instance named ${name} exists already`)

export const HostSlotsExhausted = defineError('insufficient_resources', 'conflict', (count: number) =>
  `this host has no free VM user left: all ${count} are in use`)

/** A hold came too late. */
export const InstanceInStandby = defineError('instance_in_standby', 'wrong-state', (name: string) => `instance ${name} is in standby; restore it first`)

/** An instance that was about to go to standby by itself is used again. */
export const StillInUse = defineError('invalid_state', 'wrong-state', (name: string) => `instance ${name} is used again`)

/** The instance expired before the change. */
export const InstanceExpired = defineError('instance_expired', 'wrong-state', (name: string) => `instance ${name} has expired and is being deleted`)

/** No hypervisor of this server has a balloon. */
export const ReclaimUnsupported = defineError('not_supported', 'unsupported', () => 'no hypervisor of this server can take memory from a guest that runs')

/** Another writer changed the row in between. */
export const StaleInstance = defineError('internal_error', 'internal', (id: string) => `instance ${id} was changed by another writer`)

/** The driver makes no memory images at all, or none of this VM. */
export const ImagingUnsupported = defineError('not_supported', 'unsupported', (call: string, hypervisor: string) =>
  `${call}: the hypervisor ${hypervisor} makes no memory images`)

/** The driver is there, but says why no VM can run. */
export const HypervisorUnavailable = defineError('not_supported', 'unsupported', (field: string, hypervisor: string, why: string) =>
  `${field}: ${hypervisor} is not available on this host: ${why}`)

/** Saving and restoring VMs was tried on this host, and failed. */
export const ImagingUnproven = defineError('not_supported', 'unsupported', (call: string, why: string) => `${call}: ${why}`)

/** The driver has no such feature. */
export const FieldUnsupported = defineError('not_supported', 'unsupported', (place: string, hypervisor: string) =>
  `${place}: the hypervisor ${hypervisor} cannot do that`)

/** The VM has no memory that could be captured now: it is ending, or was booted by a server that made no memory images. */
export const GuestNotReady = defineError('guest_not_ready', 'wrong-state', (name: string, why: string) =>
  `the guest of instance ${name} could not be put to sleep: ${why}`)

/** A volume that an instance may write has one writer, so no second instance can get it. */
export const WritableVolume = defineError('not_supported', 'unsupported', (call: string, volumeId: string, path: string) =>
  `${call}: the instance may write volume ${volumeId} (at ${path}), which can have only one writer; detach it first, or attach it with readonly: true`)

/** The volumes are not what a copy of an instance needs. */
export const VolumesDiffer = defineError('conflict', 'conflict', (call: string, why: string) => `${call}: ${why}`)

/** Somebody has written the volume, or made another one with its id, between the look and the claim, or since a memory image was made. */
export const VolumeChanged = defineError('conflict', 'conflict', (name: string) =>
  `volume ${name} was attached for writing, or made anew, meanwhile, so what is known of its content is no longer so`)

/** Something in the guest uses it. */
export const VolumeBusy = defineError('volume_busy', 'wrong-state', (volumeId: string, why: string) =>
  `volume ${volumeId} stays attached: ${why}`)

/** The guest could not mount it. */
export const VolumeMountFailed = defineError('volume_mount_failed', 'wrong-state', (volumeId: string, why: string) =>
  `volume ${volumeId} was not attached: ${why}`)

/** The driver cannot change the disks of a VM that runs. */
export const HotplugUnsupported = defineError('not_supported', 'unsupported', (call: string, hypervisor: string) =>
  `${call}: the hypervisor ${hypervisor} cannot do that while the instance runs; stop it first`)

export const DiskFull = defineError('insufficient_resources', 'conflict', (call: string) =>
  `${call}: the disk of the data folder is full; nothing was changed`)

/** The image cannot be used on this host as it is now, and stays. */
export const RestoreRefused = defineError('restore_failed', 'conflict', (name: string, why: string) =>
  `restore: instance ${name} stays in Standby: ${why}`)

/** The image cannot be used on this host as it is now, and stays. */
export const RestoreFailed = defineError('restore_failed', 'conflict', (name: string, why: string) =>
  `restore: instance ${name} is in Standby again, with disk and memory as before: ${why}`)

/** The row says that there is an image, but the folder has none. */
export const ImageMissingHere = defineError('image_lost', 'conflict', (call: string, name: string) =>
  `${call}: the memory image of instance ${name} is gone`)

/** The VM had begun to run when it failed, so its memory image is used up. */
export const ImageUsedUp = defineError('image_used_up', 'conflict', (name: string, why: string) =>
  `restore: the VM of instance ${name} failed after it had begun to run, so its memory is lost and the instance is Stopped: ${why}`)

type Errors = readonly DeclaredError[]

/** The state of the instance forbids the call. */
export const STATE_ERRORS: Errors = [InvalidState, InstanceExpired, WorkerInstance]

/** Faults of what a request says about an instance, at a create, an update or a fork. */
export const CHANGE_ERRORS: Errors = [InvalidSnapshotPolicy, InvalidTtl, InvalidExpiresAt, InvalidRestartPolicy, InvalidHealthCheck, InvalidAutoStandby, NameTaken, FieldUnsupported, PluginDisabled]

/** Faults of fields that only a create has. */
export const SHAPE_ERRORS: Errors = [InvalidSize, InvalidHotplugSize, InvalidOverlaySize, InvalidDiskIo, InvalidBandwidthDownload, InvalidBandwidthUpload, NothingToRun]

/** A VM cannot be started. */
export const START_ERRORS: Errors = [ImageMissing, HypervisorUnavailable, HostSlotsExhausted, DiskFull, VolumesDiffer, VolumeChanged, VolumeMountFailed, NothingToRun, ProgramTooLarge, UnusableImage, PluginDisabled]

/** Memory cannot be captured, or cannot be used again. */
export const MEMORY_ERRORS: Errors = [ImagingUnsupported, ImagingUnproven, GuestNotReady, WritableVolume, RestoreRefused, RestoreFailed, ImageMissingHere, ImageUsedUp, MemoryDamaged]

/** The guest's agent cannot be asked. */
export const AGENT_ERRORS: Errors = [AgentDisabled, AgentUnavailable, WorkerInstance]

/** A volume cannot be attached or detached. */
export const VOLUME_ERRORS: Errors = [AgentDisabled, AgentUnavailable, FieldUnsupported, HotplugUnsupported, VolumeBusy, VolumeMountFailed, VolumesDiffer, VolumeChanged, DiskFull, PluginDisabled]
