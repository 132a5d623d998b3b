// Which machines' boots the files of a data folder come from that `berth restore` has put back, until a server has taken note of it.
//
// What a server had written but not yet synced bears the id of its boot, as a power cut would lose it. All that was put back is on the disk.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readIfThere } from '../fs/read-if-there.ts'
import { syncFolder, writeFileDurably } from '../fs/durable.ts'

const NOTE = 'restored-boots'

/** Added to what a backup of a folder that was restored itself has brought along. */
export async function noteRestored (dataDir: string, bootId: string): Promise<void> {
  await writeFileDurably(join(dataDir, NOTE), `${[...await restoredBoots(dataDir), bootId].join('\n')}\n`)
}

export async function restoredBoots (dataDir: string): Promise<ReadonlySet<string>> {
  return new Set((await readIfThere(join(dataDir, NOTE)))?.split('\n').filter((line) => line !== ''))
}

/** Called before anything new is written: on a host that has not booted since, it would be taken for what was restored. */
export async function forgetRestored (dataDir: string): Promise<void> {
  await rm(join(dataDir, NOTE), { force: true })
  await syncFolder(dataDir)
}
