// Turns a record and its state into what the API answers.
import { ociArchitecture } from '../../../core/library/oci/architecture.ts'
import { formatRate, formatSize } from '../../../core/units.ts'
import type { NetworkAddress } from '../../networking/contract.ts'
import type { InstanceRecord, NetworkSpec } from '../model/record.ts'
import type { InstanceView } from './schemas.ts'
import { autoStandbyView } from '../auto-standby/schemas.ts'
import type { Health } from '../health/check.ts'
import { healthView } from '../health/schemas.ts'
import { restartView } from '../restart/schemas.ts'
import { phaseView } from '../phases/schemas.ts'
import type { DerivedState } from '../model/state.ts'
import { volumeViews } from '../volumes/spec.ts'

/** `linux/amd64` and its like, for this host. */
export const platform = `linux/${ociArchitecture()}`

/** The answer for one instance. */
export function viewOf (record: InstanceRecord, { state, error, restoreError }: DerivedState, address: NetworkAddress | undefined, health?: Health): InstanceView {
  const { spec } = record
  return {
    id: record.id,
    name: record.name,
    image: record.image,
    state,
    created_at: isoTime(record.createdAt),
    expires_at: record.life.expiry === undefined ? null : isoTime(record.life.expiry.at),
    hypervisor: spec.hypervisor,
    platform,
    vcpus: spec.vcpus,
    size: formatSize(spec.memoryBytes),
    ...(spec.hotplugBytes === undefined ? {} : { hotplug_size: formatSize(spec.hotplugBytes) }),
    overlay_size: formatSize(spec.overlayBytes),
    ...(spec.diskIoBps === undefined ? {} : { disk_io_bps: formatRate(spec.diskIoBps) }),
    ...(Object.keys(spec.env).length === 0 ? {} : { env: spec.env }),
    ...(Object.keys(spec.tags).length === 0 ? {} : { tags: spec.tags }),
    network: networkOf(spec.network, address),
    volumes: volumeViews(spec),
    ...(spec.gpu === undefined ? {} : { gpu: { profile: spec.gpu.profile, mdev_uuid: spec.gpu.mdevUuid } }),
    ...(spec.source === undefined ? {} : { source: spec.source }),
    has_snapshot: record.standbyAt !== null,
    ...(spec.snapshotPolicy === undefined ? {} : { snapshot_policy: spec.snapshotPolicy }),
    ...autoStandbyView(spec.autoStandby),
    ...healthView(spec.healthCheck, health),
    ...restartView(spec.restartPolicy, record.life.restart),
    ...(spec.wake === undefined ? {} : { wake: spec.wake }),
    ...phaseView(record),
    started_at: record.startedAt === null ? null : isoTime(record.startedAt),
    stopped_at: record.stoppedAt === null ? null : isoTime(record.stoppedAt),
    exit_code: record.exit?.exitCode ?? null,
    ...(record.exit === null ? {} : { exit_message: record.exit.exitMessage }),
    state_error: error ?? null,
    ...(restoreError === undefined ? {} : { restore_error: restoreError })
  }
}

/** Without an address when the plugin networking has been turned off since. */
function networkOf (network: NetworkSpec | undefined, address: NetworkAddress | undefined): InstanceView['network'] {
  if (network?.enabled !== true) return { enabled: false }
  return {
    enabled: true,
    name: 'default',
    ip: address?.ip ?? null,
    mac: address?.mac ?? null,
    ...(network.downloadBps === undefined ? {} : { bandwidth_download: formatRate(network.downloadBps) }),
    ...(network.uploadBps === undefined ? {} : { bandwidth_upload: formatRate(network.uploadBps) })
  }
}

function isoTime (ms: number): string {
  return new Date(ms).toISOString()
}
