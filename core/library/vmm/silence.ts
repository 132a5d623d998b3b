// Interprets a VMM's silence with the kernel's facts, and compares two states. Pure.
import { statFields } from '../../process/stat.ts'
import type { VmState } from '../hypervisor.ts'

/** The state of a VMM that runs and has not answered for `silentMs`. @param letter the process state in /proc/<pid>/stat */
export function stateOfSilence (letter: string | undefined, silentMs: number): VmState {
  if (letter === 'T' || letter === 't') return { status: 'hung', reason: 'the VMM process is stopped by a signal or a debugger' }
  if (letter === 'D') return { status: 'hung', reason: `the VMM process waits for the host's disk and has not answered for ${silentMs} ms` }
  return { status: 'hung', reason: `the VMM has not answered for ${silentMs} ms` }
}

const LEAST_PAUSE_MS = 3

/** Pause until the next look whether a process has ended whose socket is closed: no event tells of it. Who waits for it waits a twentieth longer at most. */
export function endPauseMs (silentMs: number): number {
  return Math.max(LEAST_PAUSE_MS, silentMs / 20)
}

/** Of a process that the kernel is taking apart: PF_EXITING in its include/linux/sched.h. */
const EXITING = 0x4

/** Whether the process is about to be gone. It answers nobody any more, and to give a large memory back takes the kernel seconds. @param stat the text of /proc/<pid>/stat */
export function isEnding (stat: string): boolean {
  return (Number(statFields(stat)[6]) & EXITING) !== 0
}

/** The process state in the text of /proc/<pid>/stat. */
export function stateLetter (stat: string): string | undefined {
  return statFields(stat)[0] || undefined
}

export function sameState (a: VmState, b: VmState): boolean {
  return a.status === b.status && a.reason === b.reason
}
