// The errors of the instances plugin. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

/** One factory for each `invalid_*` code of a field, so that the message always begins with the field's place. */
const field = (code: string) => defineError(code, 'invalid', (place: string, rule: string) => `${place}: ${rule}`)

export const InvalidSize = field('invalid_size')
export const InvalidHotplugSize = field('invalid_hotplug_size')
export const InvalidOverlaySize = field('invalid_overlay_size')
export const InvalidDiskIo = field('invalid_disk_io_bps')
export const InvalidBandwidthDownload = field('invalid_bandwidth_download')
export const InvalidBandwidthUpload = field('invalid_bandwidth_upload')
export const InvalidSnapshotPolicy = field('invalid_snapshot_policy')
export const InvalidWaitState = field('invalid_state')
export const InvalidWaitTimeout = field('invalid_timeout')

/** The image has neither entrypoint nor cmd, and the request brings none. */
export const NothingToRun = defineError('invalid_request', 'invalid', (image: string) =>
  `cmd: image ${image} names neither an entrypoint nor a cmd, so the request must bring one of them`)

export const ImageMissing = defineError('image_missing', 'wrong-state', (image: string) =>
  `the content of image ${image} is no longer on this host`)

/** `skip_guest_agent` was set at creation. */
export const AgentDisabled = defineError('not_supported', 'unsupported', (what: string) =>
  `${what} does not work for this instance: it was created with skip_guest_agent, so it has no guest agent`)

export const AgentUnavailable = defineError('agent_unavailable', 'unavailable', (name: string) =>
  `the guest agent of instance ${name} does not answer`)

export const HostSlotsExhausted = defineError('insufficient_resources', 'conflict', (count: number) =>
  `this host has no free VM user left: all ${count} are in use`)

/** Another writer changed the row in between. */
export const StaleInstance = defineError('internal_error', 'internal', (id: string) => `instance ${id} was changed by another writer`)
