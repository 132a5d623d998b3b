// Where a process works.
import { readlink } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** Undefined when it has ended meanwhile, or belongs to somebody whose processes are none of our business. */
export async function workingFolder (pid: string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/cwd`)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return undefined
    throw error
  }
}
