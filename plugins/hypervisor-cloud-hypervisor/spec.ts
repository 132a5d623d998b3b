// Cloud Hypervisor's configuration of a VM, and the specifications that this driver refuses. Pure.
import type { VmDisk, VmSpec } from '../../core/library/hypervisor.ts'
import { DriverCannot, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { checkNetwork } from '../../core/library/vmm/network.ts'
import type { Shape } from '../../core/library/vmm/shape.ts'
import { GUEST_CID, VSOCK_ARGUMENT } from '../../core/library/vmm/vsock.ts'
import type { RestRequest } from '../../core/library/vmm/rest-launch.ts'
import { BALLOON, DISK_LIMIT, diskLink, DRIVER, INITRD, KERNEL, NIC, RESTORED, VSOCK, VSOCK_SOCKET } from './names.ts'

const MIB = 2 ** 20
export const MAX_VCPUS = 254
const MAX_UNIT = 63
// Also a serial number, which has at most 20 bytes.
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
/** ids that other devices have */
const TAKEN: readonly string[] = [NIC, VSOCK, BALLOON]
/** An empty bucket pauses a disk for 100 ms, so a bucket that is refilled faster would make the disk slower than requested. */
const REFILL_MS = 1000
/** Reset by a triple fault, which needs no device. */
const RESET_ARGUMENT = 'reboot=t'

/** @throws DriverCannot, SpecInvalid */
export function checkSpec (spec: VmSpec): void {
  if ((spec.hotplugBytes ?? 0) > 0) throw DriverCannot(DRIVER, 'plug memory into a VM')
  if (!Number.isInteger(spec.vcpus) || spec.vcpus < 1 || spec.vcpus > MAX_VCPUS) throw SpecInvalid(`vcpus is ${spec.vcpus}, and must be 1 to ${MAX_VCPUS}`)
  if (!(spec.memoryBytes >= MIB)) throw SpecInvalid(`memoryBytes is ${spec.memoryBytes}, and must be at least ${MIB}`)
  const ids = new Set<string>(TAKEN)
  const units = new Set<number>()
  for (const { id, unit } of spec.disks) {
    if (!DISK_ID.test(id) || ids.has(id)) throw SpecInvalid(`the disk id "${id}" is not unique, or does not match ${DISK_ID.source}`)
    ids.add(id)
    if (unit === undefined) continue
    checkUnit(unit)
    if (units.has(unit)) throw SpecInvalid(`two disks have the unit ${unit}`)
    units.add(unit)
  }
  if (spec.network !== undefined) checkNetwork(spec.network)
}

function checkUnit (unit: number): void {
  if (!Number.isInteger(unit) || unit < 0 || unit > MAX_UNIT) throw SpecInvalid(`a disk's unit is ${unit}, and must be 0 to ${MAX_UNIT}`)
}

/** Checks a disk for a running VM. */
export function checkPlugged ({ id, unit }: VmDisk): void {
  if (!DISK_ID.test(id) || TAKEN.includes(id)) throw SpecInvalid(`the disk id "${id}" does not match ${DISK_ID.source}`)
  if (unit === undefined) throw SpecInvalid(`the disk "${id}" comes to a running VM, and has no unit`)
  checkUnit(unit)
}

/** The guest's memory, in whole MiB. */
export function memoryBytesOf ({ memoryBytes }: Pick<VmSpec, 'memoryBytes'>): number {
  return Math.ceil(memoryBytes / MIB) * MIB
}

/** The kernel's command line: the caller's words, and how the agent is reached. */
export function kernelArguments ({ kernel }: Pick<VmSpec, 'kernel'>): string[] {
  return [...kernel.arguments, VSOCK_ARGUMENT, RESET_ARGUMENT]
}

/** A device of the host may write to any part of the guest's memory, so none of it can be given back. */
export function hasBalloon ({ balloon, devices = [] }: Pick<VmSpec, 'balloon' | 'devices'>): boolean {
  return balloon === true && devices.length === 0
}

export interface VmConfigOptions {
  /** bytes that the guest has given up; undefined: the VM has no balloon */
  readonly balloonBytes: number | undefined
}

/** The body of `vm.create`, and the configuration for restoring a snapshot. All ids are explicit, since a saved state finds its devices by them. */
export function vmConfig (spec: VmSpec, { balloonBytes }: VmConfigOptions): Record<string, unknown> {
  const { vcpus, diskBytesPerSecond: limit, network, devices = [] } = spec
  return {
    cpus: { boot_vcpus: vcpus, max_vcpus: vcpus },
    memory: { size: memoryBytesOf(spec) },
    payload: { kernel: KERNEL, initramfs: INITRD, cmdline: kernelArguments(spec).join(' ') },
    ...limit === undefined ? {} : { rate_limit_groups: [{ id: DISK_LIMIT, rate_limiter_config: { bandwidth: { size: limit, refill_time: REFILL_MS } } }] },
    disks: spec.disks.map((disk) => diskConfig(disk, limit !== undefined)),
    ...network === undefined ? {} : { net: [{ id: NIC, tap: network.tap, mac: network.mac }] },
    ...balloonBytes === undefined ? {} : { balloon: { id: BALLOON, size: balloonBytes, deflate_on_oom: true, free_page_reporting: true } },
    ...devices.length === 0 ? {} : { devices: devices.map(({ sysfs }, index) => ({ id: `host-${index}`, path: sysfs })) },
    vsock: { id: VSOCK, cid: GUEST_CID, socket: VSOCK_SOCKET },
    // Goes to the process's standard output, which is a file that no restart truncates. A file that Cloud Hypervisor opens itself would be emptied at each start.
    serial: { mode: 'Tty' },
    console: { mode: 'Off' }
  }
}

/** Restores the folder in the VM's own, and leaves the guest paused. All memory is copied in: on-demand paging starves guests of this version, and a concurrent snapshot waits for it. */
export function restoreRequest (): RestRequest {
  return { method: 'PUT', path: '/vm.restore', body: { source_url: `file://${RESTORED}`, memory_restore_mode: 'Copy', resume: false } }
}

/** One disk, in the form of `vm.create` and `vm.add-disk`. */
export function diskConfig (disk: VmDisk, isLimited: boolean): Record<string, unknown> {
  return {
    id: disk.id,
    path: diskLink(disk),
    readonly: disk.readonly,
    // Otherwise what a guest writes to the first sector would decide the image's format; and that sector could not be written.
    image_type: 'Raw',
    serial: disk.id,
    ...isLimited ? { rate_limit_group: DISK_LIMIT } : {}
  }
}

/** The parts of a VM that a saved state depends on. */
export function shapeOf (spec: VmSpec, vmmVersion: string, cpu: string): Shape {
  return {
    vmm: `Cloud Hypervisor ${vmmVersion}`,
    cpu,
    // The TAP and the MAC are no part of the shape: the state contains the guest's own MAC.
    ...spec.network === undefined ? {} : { network: 'virtio-net' },
    vcpus: String(spec.vcpus),
    memory: `${memoryBytesOf(spec) / MIB} MiB`,
    disks: spec.disks.filter(({ unit }) => unit === undefined).map(({ id, readonly }) => `${id} (${readonly ? 'read-only' : 'writable'})`).join(', '),
    limit: spec.diskBytesPerSecond === undefined ? 'none' : 'all disks'
  }
}
