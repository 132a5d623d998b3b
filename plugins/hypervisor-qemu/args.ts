// Builds QEMU's command line from a VM's specification. Pure. The README says what was measured for each choice.
import { basename } from 'node:path'
import type { VmDisk, VmSpec } from '../../core/contracts/hypervisor.ts'
import { SpecInvalid } from './errors.ts'
import { checkNetwork, networkBackend, networkDevice } from './network.ts'

/** names of the sockets in the run folder, which is the VMM's working folder */
export const QMP_SOCKET = 'qmp.sock'
export const AGENT_SOCKET = 'agent.sock'

/** name of the guest's memory in a saved state */
export const MEMORY_ID = 'memory'

const MIB = 2 ** 20
const MAX_VCPUS = 255
// PCI slots are part of a memory image: each device keeps its own, whatever else a VM has. 5 is left for
// a balloon; 31 is the chip set's.
const SLOT = { ports: 2, entropy: 3, network: 4, firstDisk: 8, lastDisk: 30 } as const
const DISK_ID = /^[a-z][a-z0-9-]{0,19}$/
// Neither a USB nor a SATA controller, nor timers and buses that nothing here uses: their set-up and probing take time.
export const MACHINE = 'q35,hpet=off,usb=off,smbus=off,sata=off,dump-guest-core=off,memory-backend=memory'
const KERNEL_ARGUMENTS = {
  kvm: [],
  tcg: [
    // At boot the kernel counts timer interrupts for some 60 ms. An emulated processor that has to wait for a busy host meanwhile
    // sees too few, takes its timer for broken, and comes up without working interrupts. Under KVM the kernel knows to skip that.
    'no_timer_check',
    // Two sets of page tables keep a processor from reading the kernel's memory ahead of the check of its right to. An emulated one looks an
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
}

export interface Incoming {
  /** whether this QEMU can map a file privately that it may only read */
  readonly readonlyPrivate: boolean
}

/** The arguments for a new VM, or with `incoming` for one that waits for a saved state. They name the sockets relative to the working folder. */
export function buildArgs (spec: VmSpec, options: ArgsOptions, incoming?: Incoming): string[] {
  check(spec)
  if (spec.memory?.sharing === 'private' && incoming === undefined) throw SpecInvalid('private memory needs an image to be restored from')
  const memoryMib = memoryMibOf(spec)
  return [
    '-name', `berth-${value(spec.id)}`,
    '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
    '-msg', 'timestamp=on',
    // Guest memory can be read by nobody else, and no fork or exec helps whoever takes QEMU over.
    '-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
    '-accel', options.accelerator === 'kvm' ? 'kvm' : `tcg,thread=multi,tb-size=${options.translationCacheMib}`,
    '-cpu', options.cpuModel,
    '-smp', `cpus=${spec.vcpus}`,
    '-m', `${memoryMib}M`,
    '-object', JSON.stringify(memoryObject(spec, incoming?.readonlyPrivate === true)),
    '-machine', MACHINE,
    '-qmp', `unix:${QMP_SOCKET},server=on,wait=off`,
    '-kernel', spec.kernel.path,
    '-initrd', spec.kernel.initrd,
    '-append', kernelArguments(spec, options).join(' '),
    ...console(spec),
    ...ports(spec),
    '-object', '{"qom-type":"rng-builtin","id":"entropy"}',
    '-device', pciDevice('virtio-rng-pci,rng=entropy,id=rng', SLOT.entropy),
    ...spec.network === undefined ? [] : [
      '-netdev', networkBackend(spec.network, options.vhost === true),
      '-device', pciDevice(networkDevice(spec.network), SLOT.network)
    ],
    ...spec.disks.flatMap(disk),
    ...incoming === undefined ? [] : ['-incoming', 'defer']
  ]
}

/** What the kernel is told: the caller's words, and those that its processor asks for. */
export function kernelArguments ({ kernel }: Pick<VmSpec, 'kernel'>, { accelerator }: Pick<ArgsOptions, 'accelerator'>): string[] {
  return [...kernel.arguments, ...KERNEL_ARGUMENTS[accelerator]]
}

/** The guest's memory, in whole MiB. */
export function memoryMibOf ({ memoryBytes }: Pick<VmSpec, 'memoryBytes'>): number {
  return Math.ceil(memoryBytes / MIB)
}

/** Size of a memory file. */
export function memoryFileBytes (spec: Pick<VmSpec, 'memoryBytes'>): number {
  return memoryMibOf(spec) * MIB
}

/** The CPU model when the configuration names none: all of the host's under KVM, and x86-64-v3 as far as TCG has it. */
export function defaultCpuModel (accelerator: 'kvm' | 'tcg'): string {
  return accelerator === 'kvm' ? 'host' : 'Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid'
}

function memoryObject (spec: VmSpec, readonlyPrivate: boolean): Record<string, unknown> {
  const common = { id: MEMORY_ID, size: memoryFileBytes(spec) }
  const { memory } = spec
  if (memory === undefined) return { 'qom-type': 'memory-backend-ram', ...common }
  const file = { 'qom-type': 'memory-backend-file', ...common, 'mem-path': memory.path, share: memory.sharing === 'shared' }
  return memory.sharing === 'private' && readonlyPrivate ? { ...file, readonly: true, rom: 'off' } : file
}

function console (spec: VmSpec): string[] {
  return ['-chardev', fileChardev('vmm', spec.files.vmm), '-serial', 'chardev:vmm']
}

function ports (spec: VmSpec): string[] {
  return [
    // Port 0 is reserved for a console; a port costs the guest two queues, so there are no more than needed.
    '-device', pciDevice('virtio-serial-pci,id=ports,max_ports=4', SLOT.ports),
    '-chardev', `socket,id=agent,path=${AGENT_SOCKET},server=on,wait=off`,
    '-device', 'virtserialport,bus=ports.0,nr=1,chardev=agent,id=port-agent,name=berth.agent',
    '-chardev', fileChardev('output', spec.files.output),
    '-device', 'virtserialport,bus=ports.0,nr=2,chardev=output,id=port-output,name=berth.output',
    '-chardev', fileChardev('report', spec.files.report),
    '-device', 'virtserialport,bus=ports.0,nr=3,chardev=report,id=port-report,name=berth.report'
  ]
}

function disk (disk: VmDisk, index: number): string[] {
  const { id } = disk
  const node = diskNodes(id)[0]
  return [
    '-blockdev', JSON.stringify(diskNode(node, disk)),
    '-device', pciDevice(`virtio-blk-pci,drive=${node},id=${diskDevice(id)},serial=${id}`, SLOT.firstDisk + index)
  ]
}

/** QEMU's name of the device that a disk is attached to. */
export function diskDevice (id: string): string {
  return `blk-${id}`
}

/** The two names that a disk's image goes by: the first at the launch, and the other one after each replacement in turn. */
export function diskNodes (id: string): readonly [string, string] {
  return [`disk-${id}`, `other-${id}`]
}

/** An image as QEMU opens it. */
export function diskNode (name: string, { path, readonly }: Pick<VmDisk, 'path' | 'readonly'>): Record<string, unknown> {
  return {
    driver: 'raw',
    'node-name': name,
    'read-only': readonly,
    discard: 'unmap',
    // The host's page cache is shared by all VMs of one image; the guest's flushes reach the disk.
    cache: { direct: false, 'no-flush': false },
    file: { driver: 'file', filename: path, locking: 'auto', aio: 'threads' }
  }
}

function pciDevice (device: string, slot: number): string {
  return `${device},bus=pcie.0,addr=0x${slot.toString(16)},disable-legacy=on,romfile=`
}

function fileChardev (id: string, path: string): string {
  return `file,id=${id},path=${value(path)},append=on`
}

/** In QEMU's option lists a comma ends a value unless it is doubled. */
function value (text: string): string {
  return text.replaceAll(',', ',,')
}

function check (spec: VmSpec): void {
  const maxDisks = SLOT.lastDisk - SLOT.firstDisk + 1
  if (spec.disks.length > maxDisks) throw SpecInvalid(`it has ${spec.disks.length} disks, and ${maxDisks} fit`)
  if (!Number.isSafeInteger(spec.vcpus) || spec.vcpus < 1 || spec.vcpus > MAX_VCPUS) throw SpecInvalid(`vcpus is ${spec.vcpus}, and must be 1 to ${MAX_VCPUS}`)
  if (!Number.isSafeInteger(spec.memoryBytes) || spec.memoryBytes < 32 * MIB) throw SpecInvalid(`memoryBytes is ${spec.memoryBytes}, and must be at least ${32 * MIB}`)
  if (spec.network !== undefined) checkNetwork(spec.network)
  const bad = spec.disks.find(({ id }) => !DISK_ID.test(id))
  if (bad !== undefined) throw SpecInvalid(`the disk ${basename(bad.path)} has the id "${bad.id}", which must match ${DISK_ID.source}`)
  if (new Set(spec.disks.map(({ id }) => id)).size !== spec.disks.length) throw SpecInvalid('two disks have the same id')
}
