// Finds VMMs that no row knows: those launched by a server that was killed before it could store the handle.
// They are known by their working folder, which is the instance's own.
import { readdir, readFile } from 'node:fs/promises'
import { isAbsolute, relative, sep } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { readIdentity } from '../../core/process/identity.ts'
import { workingFolder } from '../../core/process/working-folder.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'

/** Processes by the name of the folder in `instancesFolder` that they work in. */
export async function processesByFolder (instancesFolder: string): Promise<ReadonlyMap<string, readonly ProcessIdentity[]>> {
  const found = new Map<string, ProcessIdentity[]>()
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const folder = await workingFolder(entry)
    if (folder === undefined) continue
    const inside = relative(instancesFolder, folder)
    if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) continue
    const identity = readIdentity(Number(entry))
    const name = inside.split(sep)[0] ?? ''
    if (identity !== undefined && !await hasTerminal(entry)) found.set(name, [...found.get(name) ?? [], identity])
  }
  return found
}

/** VMMs never have one; an operator's shell that stands in the folder does. */
async function hasTerminal (pid: string): Promise<boolean> {
  const stat = await ifThere(async () => await readFile(`/proc/${pid}/stat`, 'utf8'))
  return stat === undefined || stat.slice(stat.lastIndexOf(')') + 2).split(' ')[4] !== '0'
}

async function ifThere<T> (read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    // It has ended meanwhile, or belongs to somebody whose processes are none of our business.
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}
