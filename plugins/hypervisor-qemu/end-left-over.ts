// Ends the VMMs of a probe whose server was killed: no row knows them. They are found by their working folder, also when that has been removed since.
import { sep } from 'node:path'
import { endProcess } from '../../core/process/end.ts'
import { folderOf, hasTerminal, processIds } from '../../core/process/find.ts'
import { readIdentity } from '../../core/process/identity.ts'

/** The kernel's suffix for a removed folder. */
const REMOVED = ' (deleted)'

export async function endLeftOver (directory: string): Promise<void> {
  for (const pid of await processIds()) {
    const folder = await folderOf(pid)
    if (folder !== directory && folder !== `${directory}${REMOVED}` && folder?.startsWith(`${directory}${sep}`) !== true) continue
    const identity = readIdentity(pid)
    // It may be an operator's shell in that folder.
    if (identity !== undefined && !await hasTerminal(pid)) await endProcess(identity)
  }
}
