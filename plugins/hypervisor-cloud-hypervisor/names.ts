// Names in a VM's run folder, which is the VMM's working folder. They are relative and the same in all VMs, so no path that Cloud Hypervisor gets, or writes, leads to another VM's files.

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

/** folders with a snapshot: one for a capture, one for a restore */
export const CAPTURED = 'captured'
export const RESTORED = 'restored'
/** Cloud Hypervisor's names for the files of a snapshot */
export const SNAPSHOT = { config: 'config.json', state: 'state.json', memory: 'memory-ranges' } as const

/** The link of a disk with a unit contains the unit, so that Cloud Hypervisor's own list shows which units are taken. */
export function diskLink ({ id, unit }: { readonly id: string, readonly unit?: number }): string {
  return unit === undefined ? `disk-${id}` : `unit-${unit}`
}

/** A name that `diskLink` makes. A guest may control what the VMM says, and the server, which may be root, removes the file of a disk by the name that the VMM has for it. */
export const DISK_LINK = /^(?:disk-[a-z][a-z0-9-]*|unit-\d+)$/
