// Names in a VM's run folder, which is the VMM's working folder. They are relative and the same in all VMs, so nothing that Cloud Hypervisor is told, or writes down, leads to another VM's files.

export const DRIVER = 'cloud-hypervisor'
/** version of this driver's memory images */
export const IMAGE_VERSION = 1

export const API_SOCKET = 'api.sock'
export const VSOCK_SOCKET = 'vsock.sock'
export const KERNEL = 'kernel'
export const INITRD = 'initrd'

/** ids of devices */
export const NIC = 'nic'
export const VSOCK = 'vsock'
export const BALLOON = 'balloon'
export const DISK_LIMIT = 'disks'

/** folders with a snapshot: one on its way out, one on its way in */
export const CAPTURED = 'captured'
export const RESTORED = 'restored'
/** what Cloud Hypervisor calls the parts of one */
export const SNAPSHOT = { config: 'config.json', state: 'state.json', memory: 'memory-ranges' } as const

/** A disk with a unit has that in its name, so that Cloud Hypervisor itself tells which are taken. */
export function diskLink ({ id, unit }: { readonly id: string, readonly unit?: number }): string {
  return unit === undefined ? `disk-${id}` : `unit-${unit}`
}
