// Which folders processes work in: a machine's VMM works in the folder of its disk.
import { readdir, readlink, realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { hasCode } from '../errors/system-code.ts'

/** Folders below `dataDir`, relative to it, that are the working folder of a process. */
export async function workplaces (dataDir: string): Promise<string[]> {
  const root = await realpath(dataDir)
  const found = new Set<string>()
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const inside = relative(root, await cwdOf(pid) ?? '/')
    if (inside !== '' && !inside.startsWith('..')) found.add(inside)
  }
  return [...found]
}

async function cwdOf (pid: string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/cwd`)
  } catch (error) {
    // It has ended meanwhile, or is none of our business.
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}
