// Finds VMMs that no row knows: those launched by a server that was killed before it could store the handle.
// They are known by their working folder, which is the instance's own.
import { isAbsolute, relative, sep } from 'node:path'
import { folderOf, hasTerminal, processIds } from '../../../core/process/find.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'

/** Processes by the name of the folder in `instancesFolder` that they work in. */
export async function processesByFolder (instancesFolder: string): Promise<ReadonlyMap<string, readonly ProcessIdentity[]>> {
  const found = new Map<string, ProcessIdentity[]>()
  for (const pid of await processIds()) {
    const folder = await folderOf(pid)
    if (folder === undefined) continue
    const inside = relative(instancesFolder, folder)
    if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) continue
    const identity = readIdentity(pid)
    const name = inside.split(sep)[0] ?? ''
    // VMMs never have a terminal; the shell of an operator who is in the folder does.
    if (identity !== undefined && !await hasTerminal(pid)) found.set(name, [...found.get(name) ?? [], identity])
  }
  return found
}
