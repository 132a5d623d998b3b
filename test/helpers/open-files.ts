// The descriptors of a process.
import { readdir } from 'node:fs/promises'

/** How many files a process has open. */
export async function openFilesOf (pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}
