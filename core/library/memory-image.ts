// Makes the files of a memory image durable.
import { dirname } from 'node:path'
import { syncFile, syncFolder } from '../fs/durable.ts'

/** Syncs the files of a memory image, and then their names. Best done after the VM has ended or gone on: it takes as long as the disk does. */
export async function syncMemoryImage (paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => syncFile(path)))
  await Promise.all([...new Set(paths.map((path) => dirname(path)))].map((folder) => syncFolder(folder)))
}
