// The mark of a data folder in which something is being put back. No server starts on it before that is complete, and no other command takes it up: what is whole and what is not differs.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readIfThere } from '../fs/read-if-there.ts'
import { syncFolder, writeFileDurably } from '../fs/durable.ts'

/** What was being put back in the data folder is not whole. */
export class RestoreUnfinished extends Error {
  override readonly name = 'RestoreUnfinished'
}

/** `restore` puts a backup into an empty folder, `restore-database` an earlier database into one that is in use. */
export type PuttingBack = 'restore' | 'restore-database'

const MARK = 'restore-unfinished'

/** @param what the command's argument, for people */
export async function markUnfinished (dataDir: string, command: PuttingBack, what: string): Promise<void> {
  await writeFileDurably(join(dataDir, MARK), `berth ${command} ${what}\n`)
}

/** Whether this command has begun here and was not finished. @throws RestoreUnfinished when another one has */
export async function isUnfinished (dataDir: string, command: PuttingBack): Promise<boolean> {
  const line = await lineOf(dataDir)
  if (line === undefined) return false
  if (!line.startsWith(`berth ${command} `)) throw notWhole(dataDir, line)
  return true
}

export async function markFinished (dataDir: string): Promise<void> {
  await rm(join(dataDir, MARK), { force: true })
  await syncFolder(dataDir)
}

/** @throws RestoreUnfinished */
export async function requireFinished (dataDir: string): Promise<void> {
  const line = await lineOf(dataDir)
  if (line !== undefined) throw notWhole(dataDir, line)
}

async function lineOf (dataDir: string): Promise<string | undefined> {
  return (await readIfThere(join(dataDir, MARK)))?.trim()
}

function notWhole (dataDir: string, line: string): RestoreUnfinished {
  return new RestoreUnfinished(`what was being put back in ${dataDir} is not whole: run the same command again: ${line}`)
}
