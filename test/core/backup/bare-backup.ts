// A data folder that a kernel without plugins has made, a backup of it, and the command line on such folders.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { runCommandLine } from '../../../core/cli/run.ts'
import { keepCopy } from '../../../core/data/copies/keep.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { bareApp, temporaryFolder } from '../bare-app.ts'

export interface Outcome { readonly code: number, readonly said: string }

export async function berth (dataDir: string, ...args: string[]): Promise<Outcome> {
  return await berthOn({ BERTH_DATA_DIR: dataDir }, ...args)
}

/** @param environment which says where the data folder and the database are */
export async function berthOn (environment: Readonly<Record<string, string>>, ...args: string[]): Promise<Outcome> {
  const lines: string[] = []
  const say = (line: string): void => { lines.push(line) }
  const code = await runCommandLine(args, { environment, print: say, complain: say })
  return { code, said: lines.join('\n') }
}

/** The server on the folder has ended. `bytes`: of a file that is the folder's largest */
export async function backedUp (t: Test, { bytes = 0 }: { readonly bytes?: number } = {}): Promise<{ readonly dataDir: string, readonly backup: string, readonly folder: string }> {
  const { app, dataDir } = await bareApp(t)
  await app.start({ listen: false })
  await app.stop()
  await mkdir(join(dataDir, 'disks'))
  await writeFile(join(dataDir, 'disks/disk'), Buffer.alloc(bytes, 'x'))
  const folder = await temporaryFolder(t)
  const backup = join(folder, 'backup')
  const { code, said } = await berth(dataDir, 'backup', backup)
  if (code !== 0) throw new Error(said)
  return { dataDir, backup, folder }
}

/** Keeps a copy of the database, as an upgrade does. */
export async function keepOne (dataDir: string): Promise<void> {
  const url = `sqlite:${join(dataDir, 'berth.db')}`
  const database = openDatabase(url)
  try {
    await keepCopy(database, { dataDir, url, commands: createHostCommands(), disk: createDiskSpace(dataDir, { bytes: 0, inodes: 0 }), most: 3 }, { reason: 'for the test', open: false })
  } finally {
    await database.destroy()
  }
}
