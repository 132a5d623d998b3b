// Says how a run ended, in words for people: by the guest's report, or by what else is known when there is no report.
import { constants } from 'node:os'
import type { ExitFacts } from '../model/record.ts'
import type { GuestRefusal } from '../../guest/contract.ts'
import { cleanLine, type ExitReport } from './report.ts'

/** what a guest reports that could not get as far as a program */
const BOOT_FAILED = 255

// The words by which people know the signals; a signal that is not here is named as the kernel names it.
const SIGNAL_WORDS: Readonly<Record<number, string>> = {
  1: 'hangup',
  2: 'interrupt',
  3: 'quit',
  4: 'illegal instruction',
  5: 'trace/breakpoint trap',
  6: 'aborted',
  7: 'bus error',
  8: 'floating point exception',
  9: 'killed',
  10: 'user defined signal 1',
  11: 'segmentation fault',
  12: 'user defined signal 2',
  13: 'broken pipe',
  14: 'alarm clock',
  15: 'terminated'
}

/** Exit code and message of a run that the guest has reported on. */
export function exitOf (report: ExitReport): ExitFacts {
  return { exitCode: report.exitCode, exitMessage: messageOf(report) }
}

/** Exit code and message of a guest that did not take its workload: its program never ran, whatever the guest reports. */
export function exitOfRefusal ({ message, exitCode = BOOT_FAILED }: GuestRefusal): ExitFacts {
  return exitOf({ exitCode: exitCode === 0 ? BOOT_FAILED : exitCode, signal: 0, oom: false, error: cleanLine(message) })
}

/** Exit facts of a VM that ended without a report. */
export function exitWithoutReport (why: 'stopped' | 'unexpected', lastLine: string): ExitFacts {
  if (why === 'stopped') return { exitCode: null, exitMessage: 'the VM was ended by the server before its program had exited' }
  const detail = lastLine === '' ? '' : `; last line of its log: ${lastLine}`
  return { exitCode: null, exitMessage: `the VM ended without reporting an exit code${detail}` }
}

function messageOf ({ exitCode, signal, oom, error }: ExitReport): string {
  if (signal !== 0) return `killed by signal ${signal} (${signalWord(signal)})${oom ? ' - OOM' : ''}`
  if (exitCode === 0) return 'success'
  if (oom && exitCode === 137) return 'killed by signal 9 (killed) - OOM'
  if (exitCode === 127) return 'command not found'
  // An init that could not even try to start the program says why; a bare 126 is always a file without execute permission.
  if (exitCode === 126) return 'permission denied (command not executable)'
  return error === undefined ? `exit code ${exitCode}` : `exit code ${exitCode}: ${error}`
}

function signalWord (signal: number): string {
  const known = SIGNAL_WORDS[signal]
  if (known !== undefined) return known
  return Object.entries(constants.signals).find(([, number]) => number === signal)?.[0] ?? `signal ${signal}`
}
