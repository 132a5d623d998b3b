// Which folders processes work in: a machine's VMM works in the folder of its disk.
import { realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { folderOf, processIds } from '../process/find.ts'

/** Folders below `dataDir`, relative to it, that are the working folder of a process. */
export async function workplaces (dataDir: string): Promise<string[]> {
  const root = await realpath(dataDir)
  const found = new Set<string>()
  for (const pid of await processIds()) {
    const inside = relative(root, await folderOf(pid) ?? '/')
    if (inside !== '' && !inside.startsWith('..')) found.add(inside)
  }
  return [...found]
}
