// Names in a VM's run folder, which is vfkit's working folder.

export const DRIVER = 'vz'
/** what vfkit is called in errors */
export const VFKIT = 'vfkit'

export const API_SOCKET = 'api.sock'
/** vfkit listens there, and leads whoever connects to the agent's port in the guest */
export const AGENT_SOCKET = 'agent.sock'
/** What the guest says, on ports behind it (`core/library/vmm/output.ts`): vfkit connects there. */
export const VSOCK = 'vsock'
export const KERNEL = 'kernel'
export const INITRD = 'initrd'

export function diskLink (id: string): string { return `disk-${id}` }
