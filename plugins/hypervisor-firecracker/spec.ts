// Firecracker's requests for building a VM, in order, and the specifications that this driver refuses. Pure.
import type { VmDisk, VmSpec } from '../../core/library/hypervisor.ts'
import { DriverCannot, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { checkNetwork } from '../../core/library/vmm/network.ts'
import type { RestRequest } from '../../core/library/vmm/rest-launch.ts'
import type { Shape } from '../../core/library/vmm/shape.ts'
import { GUEST_CID, RESET_ARGUMENT, VSOCK_ARGUMENT } from '../../core/library/vmm/vsock.ts'
import { diskLink, DRIVER, driveId, INITRD, KERNEL, MEMORY, NIC, STATE, VSOCK_SOCKET } from './names.ts'

const MIB = 2 ** 20
export const MAX_VCPUS = 32
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
/** Its bucket is refilled within this time, so a limit applies to each second. */
const REFILL_MS = 1000

/** @throws DriverCannot, SpecInvalid */
export function checkSpec (spec: VmSpec): void {
  if ((spec.hotplugBytes ?? 0) > 0) throw DriverCannot(DRIVER, 'plug memory into a VM')
  if ((spec.devices ?? []).length > 0) throw DriverCannot(DRIVER, 'give a VM devices of the host')
  if (spec.disks.some(({ unit }) => unit !== undefined)) throw DriverCannot(DRIVER, 'give a VM disks that come and go while it runs')
  if (!Number.isInteger(spec.vcpus) || spec.vcpus < 1 || spec.vcpus > MAX_VCPUS) throw SpecInvalid(`vcpus is ${spec.vcpus}, and must be 1 to ${MAX_VCPUS}`)
  if (!(spec.memoryBytes >= MIB)) throw SpecInvalid(`memoryBytes is ${spec.memoryBytes}, and must be at least ${MIB}`)
  const ids = new Set<string>()
  for (const { id } of spec.disks) {
    if (!DISK_ID.test(id) || ids.has(id)) throw SpecInvalid(`the disk id "${id}" is not unique, or does not match ${DISK_ID.source}`)
    ids.add(id)
  }
  if (spec.network !== undefined) checkNetwork(spec.network)
}

/** The guest's memory, in whole MiB. */
export function memoryMibOf ({ memoryBytes }: Pick<VmSpec, 'memoryBytes'>): number {
  return Math.ceil(memoryBytes / MIB)
}

/** The kernel's command line: the caller's words, and the transports of this machine's agent and its way to power off. */
export function kernelArguments ({ kernel }: Pick<VmSpec, 'kernel'>): string[] {
  return [...kernel.arguments, VSOCK_ARGUMENT, RESET_ARGUMENT]
}

/** All requests before the guest runs, and the one that starts it. */
export function bootRequests (spec: VmSpec): RestRequest[] {
  const limit = shareOf(spec)
  return [
    put('/machine-config', { vcpu_count: spec.vcpus, mem_size_mib: memoryMibOf(spec), smt: false, track_dirty_pages: false }),
    put('/boot-source', { kernel_image_path: KERNEL, initrd_path: INITRD, boot_args: kernelArguments(spec).join(' ') }),
    ...spec.disks.map((disk) => driveRequest(disk, limit)),
    ...spec.network === undefined ? [] : [put(`/network-interfaces/${NIC}`, { iface_id: NIC, host_dev_name: spec.network.tap, guest_mac: spec.network.mac })],
    put('/vsock', { guest_cid: GUEST_CID, uds_path: VSOCK_SOCKET }),
    put('/entropy', {}),
    put('/actions', { action_type: 'InstanceStart' })
  ]
}

function driveRequest ({ id, readonly }: VmDisk, limit: number | undefined): RestRequest {
  return put(`/drives/${driveId(id)}`, {
    drive_id: driveId(id),
    path_on_host: diskLink(id),
    is_root_device: false,
    is_read_only: readonly,
    // Without it the guest is offered no flush, and its fsync has no effect.
    cache_type: 'Writeback',
    ...limit === undefined ? {} : { rate_limiter: limiter(limit) }
  })
}

/**
 * Loads a snapshot whose files are in the run folder, and leaves the guest paused. Disks and sockets have the same names in every folder; the TAP in the snapshot is the other
 * VM's. The guest's clocks are not advanced: its agent gets the time when it wakes, and a jump of the monotonic clock would end every wait in the guest.
 */
export function loadRequest ({ network }: Pick<VmSpec, 'network'>): RestRequest {
  return put('/snapshot/load', {
    snapshot_path: STATE,
    mem_backend: { backend_type: 'File', backend_path: MEMORY },
    ...network === undefined ? {} : { network_overrides: [{ iface_id: NIC, host_dev_name: network.tap }] },
    resume_vm: false
  })
}

/** Changes the limit of every disk. */
export function limitRequests (disks: readonly string[], bytesPerSecond: number | undefined): RestRequest[] {
  const share = bytesPerSecond === undefined ? undefined : Math.max(1, Math.floor(bytesPerSecond / disks.length))
  return disks.map((id) => ({ method: 'PATCH', path: `/drives/${driveId(id)}`, body: { drive_id: driveId(id), rate_limiter: limiter(share) } }))
}

/** Each disk has a limiter of its own: all of them together stay within the limit when each has an equal share. */
function shareOf ({ disks, diskBytesPerSecond }: VmSpec): number | undefined {
  return diskBytesPerSecond === undefined ? undefined : Math.max(1, Math.floor(diskBytesPerSecond / disks.length))
}

/** A bucket without a size is no limit. */
function limiter (bytesPerSecond: number | undefined): object {
  return { bandwidth: bytesPerSecond === undefined ? { size: 0, refill_time: 0 } : { size: bytesPerSecond, refill_time: REFILL_MS } }
}

function put (path: string, body: object): RestRequest { return { method: 'PUT', path, body } }

/** The parts of a VM that a saved state depends on. */
export function shapeOf (spec: VmSpec, vmmVersion: string, cpu: string): Shape {
  return {
    vmm: `Firecracker ${vmmVersion}`,
    cpu,
    // The TAP and the MAC are no part of the shape: the state contains the guest's own MAC.
    ...spec.network === undefined ? {} : { network: 'virtio-net' },
    vcpus: String(spec.vcpus),
    memory: `${memoryMibOf(spec)} MiB`,
    disks: spec.disks.map(({ id, readonly }) => `${id} (${readonly ? 'read-only' : 'writable'})`).join(', ')
  }
}
