// Interprets a VMM's silence with the kernel's facts, and compares two states. Pure.
import { statFields } from '../../process/stat.ts'
import type { VmState } from '../hypervisor.ts'

/** Of a process that the kernel is taking apart: PF_EXITING in its include/linux/sched.h. */
const EXITING = 0x4

/**
 * The state of a VMM that has not answered for `silentMs`; undefined when it is about to be gone: it answers nobody any more, and to give a large memory back takes the kernel seconds.
 * @param stat the text of /proc/<pid>/stat
 */
export function stateOfSilence (stat: string, silentMs: number): VmState | undefined {
  const { 0: letter, 6: flags } = statFields(stat)
  if ((Number(flags) & EXITING) !== 0) return undefined
  if (letter === 'T' || letter === 't') return { status: 'hung', reason: 'the VMM process is stopped by a signal or a debugger' }
  if (letter === 'D') return { status: 'hung', reason: `the VMM process waits for the host's disk and has not answered for ${silentMs} ms` }
  return { status: 'hung', reason: `the VMM has not answered for ${silentMs} ms` }
}

export function sameState (a: VmState, b: VmState): boolean {
  return a.status === b.status && a.reason === b.reason
}
