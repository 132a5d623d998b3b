// Turns what is known of the host into the answer of GET /resources. Pure.
import type { Capacity, Limits } from './capacity.ts'
import type { CgroupState, KeptMemory, ResourceClaim } from '../instances/room/contract.ts'
import type { GpuUsage } from '../../core/library/gpus.ts'
import type { DiskUsage } from './disk-usage.ts'
import { countedDisk } from './admission.ts'
import type { Totals } from './repository.ts'
import type { ResourcesView, ResourceStatus } from './schemas.ts'

const UNKNOWN: Capacity = { capacity: 0, limit: 0, ratio: 1, source: 'unknown' }

/** What is used without a claim. */
export interface Beside {
  readonly cgroups: CgroupState
  readonly gpus: GpuUsage | null
  readonly kept: KeptMemory
}

export function overviewOf (limits: Limits, usage: DiskUsage, total: Totals, { cgroups, gpus, kept }: Beside): Omit<ResourcesView, 'allocations'> {
  const { overlayBytes: overlays } = total
  const breakdown = { images_bytes: usage.imageBytes, oci_cache_bytes: usage.registryBytes, volumes_bytes: total.diskBytes - overlays, overlays_bytes: overlays }
  return {
    cpu: statusOf('cpu', limits.cpu, total.vcpus),
    memory: statusOf('memory', limits.memory, total.memoryBytes),
    disk: diskOf(limits, countedDisk(total, limits) + usage.imageBytes + usage.registryBytes),
    network: { ...networkOf(limits, total), ...limits.networkReason === undefined ? {} : { reason: limits.networkReason } },
    ...limits.diskIo === undefined ? {} : { disk_io: statusOf('disk_io', limits.diskIo, total.diskIoBps) },
    gpu: gpus === null ? null : gpuOf(gpus),
    disk_breakdown: breakdown,
    kept: { vms: kept.vms, memory_bytes: kept.memoryBytes },
    cgroups: cgroupsOf(cgroups)
  }
}

function gpuOf ({ mode, totalSlots, usedSlots, profiles, devices }: GpuUsage): ResourcesView['gpu'] {
  return {
    mode,
    total_slots: totalSlots,
    used_slots: usedSlots,
    profiles: profiles.map(({ name, framebufferMb, available }) => ({ name, framebuffer_mb: framebufferMb, available })),
    devices: devices.map(({ name, available }) => ({ name, available }))
  }
}

function cgroupsOf ({ controllers, ...state }: CgroupState): ResourcesView['cgroups'] {
  return { ...state, ...controllers === undefined ? {} : { controllers: [...controllers] } }
}

function statusOf (type: string, { capacity, limit, ratio, source }: Capacity, allocated: number): ResourceStatus {
  return { type, capacity, effective_limit: limit, allocated, available: Math.max(0, limit - allocated), oversub_ratio: ratio, source }
}

/** Where writable disks are overcommitted, no more is available than is really free. */
function diskOf ({ disk, freeDiskBytes = Infinity }: Limits, allocated: number): ResourceStatus {
  const status = statusOf('disk', disk, allocated)
  return { ...status, available: Math.min(status.available, freeDiskBytes) }
}

/** The direction that is fuller, by its own limit: it decides whether there is room. One without a limit never does. */
function networkOf ({ download, upload }: Limits, { downloadBps, uploadBps }: Totals): ResourceStatus {
  if (download === undefined && upload === undefined) return statusOf('network', UNKNOWN, Math.max(downloadBps, uploadBps))
  const down = statusOf('network', download ?? UNKNOWN, downloadBps)
  const up = statusOf('network', upload ?? UNKNOWN, uploadBps)
  if (download === undefined || upload === undefined) return upload === undefined ? down : up
  const difference = fullness(down) - fullness(up)
  return difference > 0 || (difference === 0 && download.limit >= upload.limit) ? down : up
}

function fullness ({ allocated, effective_limit: limit }: ResourceStatus): number {
  return limit === 0 ? Number.MAX_VALUE : allocated / limit
}

/** What only a VM takes counts where there is a VM. */
export function allocationOf ({ id, name, active, vcpus, memoryBytes, diskBytes, downloadBps, uploadBps, diskIoBps }: ResourceClaim): ResourcesView['allocations'][number] {
  return {
    instance_id: id,
    instance_name: name,
    cpu: active ? vcpus : 0,
    memory_bytes: active ? memoryBytes : 0,
    disk_bytes: diskBytes,
    network_download_bps: active ? downloadBps : 0,
    network_upload_bps: active ? uploadBps : 0,
    disk_io_bps: active ? diskIoBps : 0
  }
}
