// Guest memory that is in no file and can still be read from outside its VMM: berth-vm-memory (memory/main.c) opens memory without a name, becomes the VMM, and copies the memory on request.
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { packageRoot } from '../../package-root.ts'

export const PROGRAM = join(packageRoot, 'dist/core/library/vmm/berth-vm-memory')

/** the path at which the VMM opens the memory that it holds, or was lent (private-memory.ts); `HELD_FD` in memory/hold.c */
export const HELD_MEMORY = '/proc/self/fd/9'

/** The command prefix of a VMM that holds so much memory. */
export function holding (bytes: number): string[] {
  return [PROGRAM, 'hold', String(bytes), '--']
}

export interface ChangedCopy {
  /** a file, or the pid of a VMM that holds memory */
  readonly from: string | number
  /** the size of source and target */
  readonly bytes: number
  /** Made when it does not exist. An existing one is updated: only differences are written. The caller removes what a failure leaves of it. */
  readonly to: string
}

/** Makes a copy that is equal to its source if nobody writes the source meanwhile; else it is of no single moment. Holes stay holes. Not synced. */
export async function copyChanged (commands: HostCommands, { from, bytes, to }: ChangedCopy, options: { readonly timeoutMs?: number, readonly signal?: AbortSignal } = {}): Promise<void> {
  await commands.run(PROGRAM, ['copy', typeof from === 'number' ? `pid:${from}` : from, String(bytes), to], options)
}
