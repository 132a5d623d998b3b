// Turns what QEMU and the kernel say about a VMM into the state that callers see. Pure.
import type { VmState } from '../../core/library/hypervisor.ts'

/**
 * The state for an answer to `query-status`; undefined when it says nothing new: QEMU is about to exit, and the end of
 * its process will tell.
 */
export function stateOfAnswer (status: string): VmState | undefined {
  switch (status) {
    case 'running': return { status: 'running' }
    case 'shutdown': return undefined
    case 'io-error': return { status: 'hung', reason: 'a disk of the VM cannot be written on the host (no space left?); the VM goes on as soon as it can' }
    case 'internal-error': return { status: 'hung', reason: 'QEMU stopped the VM because of an internal error' }
    case 'guest-panicked': return { status: 'hung', reason: 'the guest\'s kernel panicked' }
    default: return { status: 'paused' }
  }
}

/** The state of a VMM that exists and has not answered for `silentMs`. @param letter the process state in /proc/<pid>/stat */
export function stateOfSilence (letter: string | undefined, silentMs: number): VmState {
  if (letter === 'T' || letter === 't') return { status: 'hung', reason: 'the VMM process is stopped by a signal or a debugger' }
  if (letter === 'D') return { status: 'hung', reason: `the VMM process waits for the host's disk and has not answered for ${silentMs} ms` }
  return { status: 'hung', reason: `the VMM has not answered for ${silentMs} ms` }
}

/** The process state in the text of /proc/<pid>/stat; the command's name before it may hold brackets and spaces. */
export function stateLetter (stat: string): string | undefined {
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) || undefined
}

export function sameState (a: VmState, b: VmState): boolean {
  return a.status === b.status && a.reason === b.reason
}
