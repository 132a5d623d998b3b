// Interprets a VMM's silence with the kernel's facts, and compares two states. Pure.
import { statFields } from '../../process/stat.ts'
import type { VmState } from '../hypervisor.ts'

/** The state of a VMM that runs and has not answered for `silentMs`. @param letter the process state in /proc/<pid>/stat */
export function stateOfSilence (letter: string | undefined, silentMs: number): VmState {
  if (letter === 'T' || letter === 't') return { status: 'hung', reason: 'the VMM process is stopped by a signal or a debugger' }
  if (letter === 'D') return { status: 'hung', reason: `the VMM process waits for the host's disk and has not answered for ${silentMs} ms` }
  return { status: 'hung', reason: `the VMM has not answered for ${silentMs} ms` }
}

/** The process state in the text of /proc/<pid>/stat. */
export function stateLetter (stat: string): string | undefined {
  return statFields(stat)[0] || undefined
}

export function sameState (a: VmState, b: VmState): boolean {
  return a.status === b.status && a.reason === b.reason
}
