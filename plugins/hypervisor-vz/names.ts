// Names in a VM's run folder, which is vfkit's working folder.

export const DRIVER = 'vz'
/** vfkit's name in errors */
export const VFKIT = 'vfkit'

export const API_SOCKET = 'api.sock'
/** vfkit listens there, and connects its clients to the agent's port in the guest */
export const AGENT_SOCKET = 'agent.sock'
/** For the guest's output, on ports after this name (`core/library/vmm/output.ts`): vfkit connects there. */
export const VSOCK = 'vsock'
export const KERNEL = 'kernel'
export const INITRD = 'initrd'

export function diskLink (id: string): string { return `disk-${id}` }
