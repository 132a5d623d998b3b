// Which folders processes work in: a machine's VMM works in the folder of its disk.
import { realpath } from 'node:fs/promises'
import { processesBelow } from '../process/find.ts'

/** Folders below `dataDir`, relative to it, that are the working folder of a process. */
export async function workplaces (dataDir: string): Promise<string[]> {
  return [...new Set((await processesBelow(await realpath(dataDir))).map(({ inside }) => inside))]
}
