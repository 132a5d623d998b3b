// Guest memory that a VMM maps privately of a file, the base, which stays as it is: the pages that differ from it are read and written from outside of the VMM. A file of changes holds them (memory/changes.c).
import type { HostCommands } from '../../contracts/services.ts'
import { copyChanged, PROGRAM } from './held-memory.ts'

/** The command prefix of a VMM that gets the base as the descriptor that `HELD_MEMORY` names, so that its user need not be able to reach the file by a path. */
export function lending (base: string): string[] {
  return [PROGRAM, 'lend', base, '--']
}

export interface MappedMemory {
  /** of the VMM */
  readonly pid: number
  readonly base: string
  /** the size of the base */
  readonly bytes: number
}

interface Options { readonly timeoutMs?: number, readonly signal?: AbortSignal }

/** Writes what a VM whose guest stands still has changed; `to` must not exist. Nothing is left of it when this rejects, unless the program itself was ended, by the signal or for want of time. Not synced. */
export async function writeChanges (commands: HostCommands, { pid, base, bytes }: MappedMemory, to: string, options: Options = {}): Promise<void> {
  await commands.run(PROGRAM, ['changes', String(pid), base, String(bytes), to], options)
}

/** Gives a VM whose guest does not run yet what another one has changed of the same base. */
export async function fillMemory (commands: HostCommands, { pid, base, bytes }: MappedMemory, changes: string, options: Options = {}): Promise<void> {
  await commands.run(PROGRAM, ['fill', String(pid), base, String(bytes), changes], options)
}

/** Makes a whole memory file of a base and its changes; the caller removes what a failure leaves of it. Not synced. @param to made when it does not exist; a copy of the base that is there is used */
export async function joinChanges (commands: HostCommands, { base, bytes, changes }: { readonly base: string, readonly bytes: number, readonly changes: string }, to: string, options: Options = {}): Promise<void> {
  await copyChanged(commands, { from: base, bytes, to }, options)
  await mergeChanges(commands, { bytes, changes }, to, options)
}

/** Makes a copy of the base what the VM that has changed it had. */
export async function mergeChanges (commands: HostCommands, { bytes, changes }: { readonly bytes: number, readonly changes: string }, to: string, options: Options = {}): Promise<void> {
  await commands.run(PROGRAM, ['merge', changes, String(bytes), to], options)
}
