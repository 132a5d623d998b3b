// Builds QEMU's command line from a VM's specification. Pure. The README says what was measured for each choice.
import { basename } from 'node:path'
import type { VmDisk, VmHostDevice, VmSpec } from '../../core/library/hypervisor.ts'
import { SpecInvalid } from '../../core/library/vmm/errors.ts'
import { HELD_MEMORY } from '../../core/library/vmm/held-memory.ts'
import { checkNetwork } from '../../core/library/vmm/network.ts'
import { hostDeviceSlot, machineOf, q35 } from './board.ts'
import type { Board, Place } from './contract.ts'
import { networkBackend, networkDevice } from './network.ts'

/** names of the sockets in the run folder, which is the VMM's working folder */
export const QMP_SOCKET = 'qmp.sock'
/** where QEMU listens for the server; also distinguishes its process from an operator's shell in the same folder */
export const QMP_ADDRESS = `unix:${QMP_SOCKET},server=on,wait=off`
export const AGENT_SOCKET = 'agent.sock'

/** name of the guest's memory in a saved state */
export const MEMORY_ID = 'memory'
const HOTPLUG_ID = 'hotplug'
/** name of the group of limits that all disks are in */
export const LIMITS_ID = 'disks'

const MIB = 2 ** 20
export const MAX_VCPUS = 255
// Linux on x86 accepts plugged memory only in whole blocks of this size.
const HOTPLUG_BLOCK_BYTES = 128 * MIB
/** name of the device by which the guest gives memory back */
const BALLOON_ID = 'balloon'
/** QEMU maps anonymous memory at a multiple of this by itself, and a file at any page: the kernel then gives it no huge page, whatever the host allows. */
const HUGE_PAGE_BYTES = 2 * MIB
const DISK_BUS = 'volumes'
const MAX_UNIT = 63
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
const KERNEL_ARGUMENTS = {
  kvm: [],
  tcg: [
    // At boot the kernel counts timer interrupts for some 60 ms. An emulated processor that has to wait for a busy host meanwhile
    // sees too few, takes its timer for broken, and comes up without working interrupts. Under KVM the kernel skips this check by itself.
    'no_timer_check',
    // Two sets of page tables keep a processor from reading the kernel's memory speculatively, before the check of its access rights. An emulated one looks an
    // address up before it reads, and the host's page tables, which do not know of the guest's, are the same in either case.
    'nopti'
  ]
} as const

export interface ArgsOptions {
  readonly accelerator: 'kvm' | 'tcg'
  readonly cpuModel: string
  /** room for translated code under TCG, MiB; taken from the host only as it fills */
  readonly translationCacheMib: number
  /** whether the host's kernel moves the packets of VMs; default: QEMU does */
  readonly vhost?: boolean
  /** whether memory without a file is memory that the process holds already (`holding`); default: QEMU allocates it */
  readonly holdsMemory?: boolean
  /** default: q35 */
  readonly board?: Board
}

export interface Incoming {
  /** whether this QEMU can map a read-only file privately: it is lent the file then, and opens no path */
  readonly readonlyPrivate: boolean
}

/** The arguments for a new VM, or with `incoming` for one that waits for a saved state. They name the sockets relative to the working folder. */
export function buildArgs (spec: VmSpec, options: ArgsOptions, incoming?: Incoming): string[] {
  const board = options.board ?? q35
  check(spec, board, incoming)
  const device = (kind: string, properties: string, place: Place): string[] => ['-device', `${board.model(kind)},${properties},${board.place(place)}`]
  if (spec.memory?.sharing === 'private' && incoming === undefined) throw SpecInvalid('private memory needs an image to be restored from')
  const memoryMib = memoryMibOf(spec)
  return [
    '-name', `berth-${value(spec.id)}`,
    '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
    '-msg', 'timestamp=on',
    // Nobody else can read guest memory, and an attacker who controls QEMU can neither fork nor exec.
    '-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
    '-accel', options.accelerator === 'kvm' ? 'kvm' : `tcg,thread=multi,tb-size=${options.translationCacheMib}`,
    '-cpu', options.cpuModel,
    '-smp', `cpus=${spec.vcpus}`,
    '-m', hotplugMibOf(spec) === 0 ? `${memoryMib}M` : `${memoryMib}M,slots=1,maxmem=${memoryMib + hotplugMibOf(spec)}M`,
    '-object', JSON.stringify(memoryObject(spec, options.holdsMemory === true, incoming?.readonlyPrivate === true)),
    ...hotplug(spec),
    '-machine', machineOf(board), ...board.arguments,
    '-qmp', QMP_ADDRESS,
    '-kernel', spec.kernel.path,
    '-initrd', spec.kernel.initrd,
    '-append', kernelArguments(spec, options).join(' '),
    ...console(spec),
    // Port 0 is reserved for a console; a port costs the guest two queues, so there are no more than needed.
    ...device('virtio-serial', 'id=ports,max_ports=4', 'ports'),
    ...ports(spec),
    '-object', '{"qom-type":"rng-builtin","id":"entropy"}',
    ...device('virtio-rng', 'rng=entropy,id=rng', 'entropy'),
    '-object', JSON.stringify(limitObject(spec)),
    ...spec.network === undefined ? [] : [
      '-netdev', networkBackend(spec.network, options.vhost === true),
      ...device('virtio-net', networkDevice(spec.network), 'network')
    ],
    ...hasBalloon(spec) ? device('virtio-balloon', `id=${BALLOON_ID},free-page-reporting=on,deflate-on-oom=on`, 'balloon') : [],
    // Also without a disk: the controller cannot be added to a running VM, and disks on it can. Hot-pluggable PCI slots would each cost every boot a bridge.
    ...device('virtio-scsi', `id=${DISK_BUS},num_queues=1`, 'volumes'),
    ...spec.disks.filter(({ unit }) => unit === undefined).flatMap((disk, index) => [
      '-blockdev', JSON.stringify(diskNode(diskNodes(disk.id)[0], disk)),
      ...device('virtio-blk', `drive=${diskNodes(disk.id)[0]},id=${diskDevice(disk.id)},serial=${disk.id}${listed(errorPolicy(disk))}`, index)
    ]),
    ...spec.disks.filter(({ unit }) => unit !== undefined).flatMap(removableDisk),
    ...(spec.devices ?? []).flatMap(hostDevice),
    // A state that says of its guest that it runs must not let it run before the server says so.
    ...incoming === undefined ? [] : ['-S', '-incoming', 'defer']
  ]
}

/** The kernel's command line: the caller's words, and those for its processor. */
export function kernelArguments (spec: Pick<VmSpec, 'kernel' | 'hotplugBytes'>, { accelerator, board = q35 }: Pick<ArgsOptions, 'accelerator' | 'board'>): string[] {
  // Without the first word, plugged memory is present and unused. A kernel that may get memory above 4 GB sets 64 MB or all that it can aside to copy the
  // data of devices that cannot reach it; the devices here can, so 4 MB (2048 pieces of 2 KB) are enough.
  const hotplug = hotplugMibOf(spec) === 0 ? [] : ['memhp_default_state=online', 'swiotlb=2048']
  return [...spec.kernel.arguments, ...KERNEL_ARGUMENTS[accelerator], ...board.kernelArguments[accelerator], ...hotplug]
}

/** A device of the host writes to the memory that the guest had when it got the device, so none of it can be given back. */
export function hasBalloon ({ balloon, devices = [] }: Pick<VmSpec, 'balloon' | 'devices'>): boolean {
  return balloon === true && devices.length === 0
}

/** The guest's memory that is plugged in, in whole MiB. */
export function hotplugMibOf ({ hotplugBytes = 0 }: Pick<VmSpec, 'hotplugBytes'>): number {
  return Math.ceil(hotplugBytes / HOTPLUG_BLOCK_BYTES) * (HOTPLUG_BLOCK_BYTES / MIB)
}

/** The guest's memory, in whole MiB. */
export function memoryMibOf ({ memoryBytes }: Pick<VmSpec, 'memoryBytes'>): number {
  return Math.ceil(memoryBytes / MIB)
}

/** All of the guest's memory, bytes. */
export function wholeBytesOf (spec: Pick<VmSpec, 'memoryBytes' | 'hotplugBytes'>): number {
  return (memoryMibOf(spec) + hotplugMibOf(spec)) * MIB
}

/** Size of a memory file. */
export function memoryFileBytes (spec: Pick<VmSpec, 'memoryBytes'>): number {
  return memoryMibOf(spec) * MIB
}

/** The CPU model when the configuration names none: the host's under KVM, and under TCG x86-64-v3 as far as TCG supports it. */
export function defaultCpuModel (accelerator: 'kvm' | 'tcg'): string {
  return accelerator === 'kvm' ? 'host' : 'Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid'
}

function memoryObject (spec: VmSpec, isHeld: boolean, readonlyPrivate: boolean): Record<string, unknown> {
  const common = { id: MEMORY_ID, size: memoryFileBytes(spec) }
  const { memory } = spec
  // The memory needs a name, though only this process knows it: QEMU from 8.2 on saves shared memory without a name together with the devices.
  if (memory === undefined && !isHeld) return { 'qom-type': 'memory-backend-ram', ...common }
  const inFile = { 'qom-type': 'memory-backend-file', ...common, align: HUGE_PAGE_BYTES }
  if (memory === undefined) return { ...inFile, 'mem-path': HELD_MEMORY, share: true }
  const file = { ...inFile, 'mem-path': memory.path, share: memory.sharing === 'shared' }
  return memory.sharing === 'private' && readonlyPrivate ? { ...file, 'mem-path': HELD_MEMORY, readonly: true, rom: 'off' } : file
}

/**
 * A memory module that the firmware does not report: the kernel finds it by its ACPI driver and adds it, like one that is plugged later. It is in no file: a
 * memory image keeps it in the state. So only this function and the state know of it.
 */
function hotplug (spec: VmSpec): string[] {
  const mib = hotplugMibOf(spec)
  if (mib === 0) return []
  return [
    '-object', JSON.stringify({ 'qom-type': 'memory-backend-ram', id: HOTPLUG_ID, size: mib * MIB }),
    '-device', `pc-dimm,id=dimm,memdev=${HOTPLUG_ID}`
  ]
}

function console (spec: VmSpec): string[] {
  return ['-chardev', fileChardev('vmm', spec.files.vmm), '-serial', 'chardev:vmm']
}

function ports (spec: VmSpec): string[] {
  return [
    '-chardev', `socket,id=agent,path=${AGENT_SOCKET},server=on,wait=off`,
    '-device', 'virtserialport,bus=ports.0,nr=1,chardev=agent,id=port-agent,name=berth.agent',
    '-chardev', fileChardev('output', spec.files.output),
    '-device', 'virtserialport,bus=ports.0,nr=2,chardev=output,id=port-output,name=berth.output',
    '-chardev', fileChardev('report', spec.files.report),
    '-device', 'virtserialport,bus=ports.0,nr=3,chardev=report,id=port-report,name=berth.report'
  ]
}

function removableDisk (disk: VmDisk): string[] {
  return ['-blockdev', JSON.stringify(diskNode(diskNodes(disk.id)[0], disk)), '-device', JSON.stringify(removableDevice(disk))]
}

function hostDevice ({ sysfs }: VmHostDevice, index: number): string[] {
  return ['-device', JSON.stringify({ driver: 'vfio-pci', sysfsdev: sysfs, id: `host-${index}`, bus: 'pcie.0', addr: hostDeviceSlot(index) })]
}

/** The device of a disk that can come and go. The guest finds all of them behind one target. */
export function removableDevice ({ id, unit, readonly }: VmDisk): Record<string, unknown> {
  return { driver: 'scsi-hd', bus: `${DISK_BUS}.0`, channel: 0, 'scsi-id': 0, lun: unit, drive: diskNodes(id)[0], id: diskDevice(id), serial: id, ...errorPolicy({ readonly }) }
}

/**
 * A write that fails on the host stops the VM, for whatever reason (a full disk, a quota, a fault of the host's disk): a guest that is told makes its file system read-only, or loses what it has not written. By itself QEMU stops it for a full
 * disk alone. A guest that writes to a disk that is only read is told. Belongs to the device, so it stays when the image is replaced, and is in no saved state.
 */
function errorPolicy ({ readonly }: Pick<VmDisk, 'readonly'>): Record<string, string> {
  return readonly ? {} : { werror: 'stop', rerror: 'report' }
}

function listed (properties: Record<string, string>): string {
  return Object.entries(properties).map(([name, text]) => `,${name}=${text}`).join('')
}

/** QEMU's name of the device that a disk is attached to. */
export function diskDevice (id: string): string {
  return `blk-${id}`
}

/** The two names for the nodes of a disk's images: the first at the launch, then alternating with each replacement. */
export function diskNodes (id: string): readonly [string, string] {
  return [`disk-${id}`, `other-${id}`]
}

/** An image as QEMU opens it. All of a VM's disks are in one throttle group, also without any limit, so that limits can be set while it runs. */
export function diskNode (name: string, { path, readonly }: Pick<VmDisk, 'path' | 'readonly'>): Record<string, unknown> {
  // The host's page cache is shared by all VMs of one image; the guest's flushes reach the disk.
  const common = { 'read-only': readonly, discard: 'unmap', cache: { direct: false, 'no-flush': false } }
  return {
    driver: 'throttle',
    'node-name': name,
    'throttle-group': LIMITS_ID,
    ...common,
    file: { driver: 'raw', ...common, file: { driver: 'file', filename: path, locking: 'auto', aio: 'threads' } }
  }
}

function limitObject ({ diskBytesPerSecond }: VmSpec): Record<string, unknown> {
  return { 'qom-type': 'throttle-group', id: LIMITS_ID, limits: diskLimits(diskBytesPerSecond) }
}

/** QEMU's limits: for reading and writing together, and all disks of the group; at most a tenth of a second's worth passes at once, without bursts. */
export function diskLimits (bytesPerSecond = 0): Record<string, number> {
  return { 'bps-total': bytesPerSecond }
}

function fileChardev (id: string, path: string): string {
  return `file,id=${id},path=${value(path)},append=on`
}

/** In QEMU's option lists a comma ends a value unless it is doubled. */
function value (text: string): string {
  return text.replaceAll(',', ',,')
}

function check (spec: VmSpec, board: Board, incoming: Incoming | undefined): void {
  const hostDevices = spec.devices?.length ?? 0
  const maxDisks = board.maxDisks(hostDevices)
  const fixed = spec.disks.filter(({ unit }) => unit === undefined)
  if (fixed.length > maxDisks) throw SpecInvalid(`it has ${fixed.length} disks and ${hostDevices} devices of the host, and ${maxDisks + hostDevices} fit`)
  const objection = board.objection(spec)
  if (objection !== undefined) throw SpecInvalid(`it ${objection}`)
  if (hostDevices > 0 && spec.memory !== undefined) throw SpecInvalid('a VM with devices of the host cannot have its memory in a file')
  if (!Number.isSafeInteger(spec.vcpus) || spec.vcpus < 1 || spec.vcpus > MAX_VCPUS) throw SpecInvalid(`vcpus is ${spec.vcpus}, and must be 1 to ${MAX_VCPUS}`)
  if (!Number.isSafeInteger(spec.memoryBytes) || spec.memoryBytes < 32 * MIB) throw SpecInvalid(`memoryBytes is ${spec.memoryBytes}, and must be at least ${32 * MIB}`)
  if (spec.network !== undefined) checkNetwork(spec.network)
  // A file that was opened for reading alone cannot be cut.
  if (hasBalloon(spec) && spec.memory?.sharing === 'private' && incoming?.readonlyPrivate !== true) throw SpecInvalid('what a guest gives back would be cut out of the private memory\'s file, which is others\' as well')
  const bad = spec.disks.find(({ id }) => !DISK_ID.test(id))
  if (bad !== undefined) throw SpecInvalid(`the disk ${basename(bad.path)} has the id "${bad.id}", which must match ${DISK_ID.source}`)
  if (new Set(spec.disks.map(({ id }) => id)).size !== spec.disks.length) throw SpecInvalid('two disks have the same id')
  const units = spec.disks.flatMap(({ unit }) => unit ?? [])
  units.forEach(checkUnit)
  if (new Set(units).size !== units.length) throw SpecInvalid('two disks have the same unit')
}

function checkUnit (unit: number): void {
  if (!Number.isSafeInteger(unit) || unit < 0 || unit > MAX_UNIT) throw SpecInvalid(`a disk has the unit ${unit}, and must have one of 0 to ${MAX_UNIT}`)
}

/** Throws `SpecInvalid` unless the disk can be given to a VM that runs. */
export function checkRemovable ({ id, unit }: VmDisk): void {
  if (!DISK_ID.test(id)) throw SpecInvalid(`a disk has the id "${id}", which must match ${DISK_ID.source}`)
  if (unit === undefined) throw SpecInvalid(`the disk "${id}" has no unit, and cannot come while the VM runs`)
  checkUnit(unit)
}
