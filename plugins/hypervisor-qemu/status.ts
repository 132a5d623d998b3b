// Maps QEMU's status of a VM to the state that callers see. Pure.
import type { VmState } from '../../core/library/hypervisor.ts'

/** The status of a VM that QEMU has stopped, since a disk could not be written on the host. */
export const STOPPED_BY_DISK = 'io-error'

/**
 * The state for an answer to `query-status`; undefined when it is none: QEMU is about to exit, and the end of
 * its process is noticed separately.
 */
export function stateOfAnswer (status: string): VmState | undefined {
  switch (status) {
    case 'running': return { status: 'running' }
    case 'shutdown': return undefined
    case STOPPED_BY_DISK: return { status: 'hung', reason: 'a disk of the VM cannot be written on the host (no space left, a quota that is reached, or a fault of the disk?); the VM goes on as soon as it can' }
    case 'internal-error': return { status: 'hung', reason: 'QEMU stopped the VM because of an internal error' }
    case 'guest-panicked': return { status: 'hung', reason: 'the guest\'s kernel panicked' }
    default: return { status: 'paused' }
  }
}
