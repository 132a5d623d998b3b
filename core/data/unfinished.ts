// The mark of a data folder that is being restored. No server starts on it before the restore is complete.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isThere } from '../fs/is-there.ts'
import { syncFolder, writeFileDurably } from '../fs/durable.ts'

/** The restore of the data folder was not finished. */
export class RestoreUnfinished extends Error {
  override readonly name = 'RestoreUnfinished'
}

const MARK = 'restore-unfinished'

export async function markUnfinished (dataDir: string, command: string): Promise<void> {
  await writeFileDurably(join(dataDir, MARK), `${command}\n`)
}

export async function isUnfinished (dataDir: string): Promise<boolean> {
  return await isThere(join(dataDir, MARK))
}

export async function markFinished (dataDir: string): Promise<void> {
  await rm(join(dataDir, MARK), { force: true })
  await syncFolder(dataDir)
}

/** @throws RestoreUnfinished */
export async function requireFinished (dataDir: string): Promise<void> {
  if (await isUnfinished(dataDir)) throw new RestoreUnfinished(`what was being put back in ${dataDir} is not whole: run the same command again (${join(dataDir, MARK)} names it)`)
}
