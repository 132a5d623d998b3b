// Replaces the database by a copy. When it is killed in between, the caller must notice and do the whole again.
import { chmod, copyFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { isThere } from '../../fs/is-there.ts'
import { syncFile, syncFolder } from '../../fs/durable.ts'
import { giveToOwner } from '../../fs/owner.ts'
import { openDatabase, withoutDeadline } from '../open.ts'
import { runTool } from './dump-tool.ts'

/** Replaces the file of a database that no process has open. */
export async function loadSqlite (copy: string, file: string): Promise<void> {
  const next = join(dirname(file), `.${basename(file)}.restoring.tmp`)
  await rm(next, { force: true })
  await copyFile(copy, next)
  await chmod(next, 0o600)
  await giveToOwner(next)
  await syncFile(next)
  // The log of the old file must not be applied to the new one; and until the new one is there, the old one is complete without it.
  if (await isThere(file)) await foldLog(file)
  for (const log of [`${file}-wal`, `${file}-shm`]) await rm(log, { force: true })
  await syncFolder(dirname(file))
  await rename(next, file)
  await syncFolder(dirname(file))
}

/** Replaces the tables of every plugin in a database that no process uses. `folder` is for the server alone. */
export async function loadMysql (commands: HostCommands, copy: string, { url, folder }: { url: string, folder: string }): Promise<void> {
  await dropTables(url)
  await runTool(commands, ['mariadb', 'mysql'], { url, folder, args: ['--default-character-set=utf8mb4', `--execute=source ${copy}`] })
}

async function foldLog (file: string): Promise<void> {
  const database = openDatabase(`sqlite:${file}`)
  try {
    await database.raw('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    await database.destroy()
  }
}

// Also drops tables that a newer version has made and the copy does not have: a later upgrade could not create them again.
async function dropTables (url: string): Promise<void> {
  const database = openDatabase(url)
  try {
    const [rows] = await database.raw('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()')
    const names: string[] = rows.map(({ name }: { name: string }) => name)
    const prefixes = names.filter((name) => name.endsWith('_migrations')).map((name) => name.slice(0, -'migrations'.length))
    await withoutDeadline(database, async () => {
      await database.transaction(async (session) => {
        await session.raw('SET foreign_key_checks = 0')
        for (const name of names.filter((candidate) => prefixes.some((prefix) => candidate.startsWith(prefix)))) await session.schema.dropTable(name)
        await session.raw('SET foreign_key_checks = 1')
      })
    })
  } finally {
    await database.destroy()
  }
}
