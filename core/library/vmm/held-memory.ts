// Guest memory that is in no file and yet can be read from outside of its VMM: berth-vm-memory (memory/main.c) opens it without a name, becomes the VMM, and copies it when asked to.
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { packageRoot } from '../../package-root.ts'

const PROGRAM = join(packageRoot, 'dist/core/library/vmm/berth-vm-memory')

/** where the VMM finds the memory that it holds; `HELD_FD` in memory/hold.c */
export const HELD_MEMORY = '/proc/self/fd/9'

/** What stands before the command of a VMM that is to hold so much. */
export function holding (bytes: number): string[] {
  return [PROGRAM, 'hold', String(bytes), '--']
}

export interface ChangedCopy {
  /** a file, or the process number of a VMM that holds memory */
  readonly from: string | number
  /** the size of either side */
  readonly bytes: number
  /** Made when it is not there. What is there already is brought up to date: only what differs is written. What a failure leaves of it is the caller's to remove. */
  readonly to: string
}

/** Makes a copy that is equal to what it is of, when nobody writes that meanwhile; else one of no one moment. Holes stay holes. Not synced. */
export async function copyChanged (commands: HostCommands, { from, bytes, to }: ChangedCopy, options: { readonly timeoutMs?: number, readonly signal?: AbortSignal } = {}): Promise<void> {
  await commands.run(PROGRAM, ['copy', typeof from === 'number' ? `pid:${from}` : from, String(bytes), to], options)
}
