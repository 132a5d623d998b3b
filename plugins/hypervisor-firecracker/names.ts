// Names in a VM's run folder. They are the same in all VMs, and relative: Firecracker writes them into a snapshot, and a clone in another folder finds its own files under them.

export const DRIVER = 'firecracker'
/** version of this driver's memory images */
export const IMAGE_VERSION = 1

export const API_SOCKET = 'api.sock'
export const VSOCK_SOCKET = 'vsock.sock'
export const NIC = 'nic'
export const KERNEL = 'kernel'
export const INITRD = 'initrd'
/** link to the file that the guest's memory is read from */
export const MEMORY = 'memory'
/** the saved state of a restore */
export const STATE = 'state'
/** files of a capture, until they are moved out of the folder */
export const CAPTURED = { state: 'captured-state', memory: 'captured-memory' } as const
/** a folder that is never there */
export const NOWHERE = 'nowhere'

/** Firecracker takes letters, digits and underscores. */
export function driveId (id: string): string { return id.replaceAll('-', '_') }
export function diskLink (id: string): string { return `disk-${id}` }
