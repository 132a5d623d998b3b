// What Cloud Hypervisor is told of a VM, and what it is not asked for. Pure.
import type { VmDisk, VmSpec } from '../../core/library/hypervisor.ts'
import { DriverCannot, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { checkNetwork } from '../../core/library/vmm/network.ts'
import type { Shape } from '../../core/library/vmm/shape.ts'
import { GUEST_CID, VSOCK_ARGUMENT } from '../../core/library/vmm/vsock.ts'
import type { RestRequest } from '../../core/library/vmm/rest-launch.ts'
import { BALLOON, DISK_LIMIT, diskLink, DRIVER, INITRD, KERNEL, NIC, RESTORED, VSOCK, VSOCK_SOCKET } from './names.ts'

const MIB = 2 ** 20
const MAX_VCPUS = 254
const MAX_UNIT = 63
// Also a serial number, which has at most 20 bytes.
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
/** ids that other devices have */
const TAKEN: readonly string[] = [NIC, VSOCK, BALLOON]
/** An empty bucket pauses a disk for 100 ms, so one that is filled in less than that would be slower than was asked for. */
const REFILL_MS = 1000
/** Reset by a triple fault, which no device has to be there for. */
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

/** Of a disk that comes to a running VM. */
export function checkPlugged ({ id, unit }: VmDisk): void {
  if (!DISK_ID.test(id) || TAKEN.includes(id)) throw SpecInvalid(`the disk id "${id}" does not match ${DISK_ID.source}`)
  if (unit === undefined) throw SpecInvalid(`the disk "${id}" comes to a running VM, and has no unit`)
  checkUnit(unit)
}

/** The guest's memory, in whole MiB. */
export function memoryBytesOf ({ memoryBytes }: Pick<VmSpec, 'memoryBytes'>): number {
  return Math.ceil(memoryBytes / MIB) * MIB
}

/** What the kernel is told: the caller's words, and where the agent is. */
export function kernelArguments ({ kernel }: Pick<VmSpec, 'kernel'>): string[] {
  return [...kernel.arguments, VSOCK_ARGUMENT, RESET_ARGUMENT]
}

/** A device of the host may write to any of the guest's memory, so none of it can be given back. */
export function hasBalloon ({ balloon, devices = [] }: Pick<VmSpec, 'balloon' | 'devices'>): boolean {
  return balloon === true && devices.length === 0
}

export interface VmConfigOptions {
  /** bytes that the guest has given up; undefined: the VM has no balloon */
  readonly balloonBytes: number | undefined
}

/** The body of `vm.create`, and the configuration that a snapshot is restored with. All ids are named, since a saved state finds its devices by them. */
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
    // Its own output, which is kept in a file that no restart cuts. A file of its own would be emptied at each start.
    serial: { mode: 'Tty' },
    console: { mode: 'Off' }
  }
}

/** Restores the folder in the VM's own, and leaves the guest standing still. All memory is copied in: what is faulted in on demand starves guests of this version, and a snapshot beside it waits. */
export function restoreRequest (): RestRequest {
  return { method: 'PUT', path: '/vm.restore', body: { source_url: `file://${RESTORED}`, memory_restore_mode: 'Copy', resume: false } }
}

/** One disk, as `vm.create` and `vm.add-disk` have it. */
export function diskConfig (disk: VmDisk, isLimited: boolean): Record<string, unknown> {
  return {
    id: disk.id,
    path: diskLink(disk),
    readonly: disk.readonly,
    // Without it, what a guest writes to the first sector would decide what its disk is; and that sector cannot be written.
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
    // Which TAP, and which MAC, is nothing to a state: it holds the MAC that the guest has.
    ...spec.network === undefined ? {} : { network: 'virtio-net' },
    vcpus: String(spec.vcpus),
    memory: `${memoryBytesOf(spec) / MIB} MiB`,
    disks: spec.disks.filter(({ unit }) => unit === undefined).map(({ id, readonly }) => `${id} (${readonly ? 'read-only' : 'writable'})`).join(', '),
    limit: spec.diskBytesPerSecond === undefined ? 'none' : 'all disks'
  }
}
