// Makes a backup of a data folder and its database, whether or not a server runs on them.
//
// A server that is killed at any moment leaves a state that the next one can start from. So a backup only needs all files as they were while neither the database nor what stands where did change:
// the database is copied before and after the files, and changed files are copied again, until both copies of the database are equal (of MySQL and MariaDB, which may be several hosts': the rows of this one) and no file
// has gone or been replaced. (A memory image that is compressed changes no row: which of its files counts is told by one that is replaced.)
import { copyFile, mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseUrl, sqliteFile } from '../config/database-url.ts'
import { sizeBytes } from '../config/quantities.ts'
import type { Config } from '../config/schema.ts'
import type { HostCommands } from '../contracts/services.ts'
import { findHostId } from '../data/folder.ts'
import { RESERVE } from '../data/reserve.ts'
import { requireFinished } from '../data/unfinished.ts'
import { copyBytes, writeCopy } from '../db/copy/write-copy.ts'
import { openDatabase } from '../db/open.ts'
import { createDiskSpace, type DiskSpace } from '../fs/disk-space.ts'
import { isThere } from '../fs/is-there.ts'
import { bootId } from '../process/identity.ts'
import { version } from '../version.ts'
import { checksumOf } from './checksum.ts'
import { Copier } from './copier.ts'
import { databaseFiles } from './database-files.ts'
import { checksumOfHost } from './host-rows.ts'
import { CONTENT, writeManifest, type Manifest } from './manifest.ts'

const MOST_PASSES = 30
/** Unfinished files go when what they are for is whole, and a pass without much to copy takes no time: each waits longer for the next one, two minutes in all. */
const REST_MS = 250

/** The backup could not be made; the message says why. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed'
}

export interface BackupOptions {
  readonly config: Config
  /** path of the configuration file, a copy of which is kept beside the data; absent: none was read */
  readonly configFile?: string
  /** must not exist, or be empty */
  readonly folder: string
  readonly commands: HostCommands
}

/** The backup is on disk when this resolves. What a failure or a kill leaves has no manifest and is never taken for a backup. @throws BackupFailed, DiskShort, RestoreUnfinished */
export async function makeBackup ({ config, configFile, folder, commands }: BackupOptions): Promise<Manifest> {
  const { dataDir } = config.server
  if (!await isThere(dataDir)) throw new BackupFailed(`there is no data folder ${dataDir}`)
  const root = await realpath(dataDir)
  await requireFinished(root)
  await prepareFolder(folder, root)
  try {
    return await fill({ config, folder, commands, ...configFile === undefined ? {} : { configFile } }, root)
  } catch (error) {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true })
    throw error
  }
}

async function fill ({ config, configFile, folder, commands }: BackupOptions, root: string): Promise<Manifest> {
  const { minFree, minFreeInodes } = config.server
  const disk = createDiskSpace(folder, { bytes: sizeBytes(minFree), inodes: minFreeInodes })
  const leftOut = new Set([...databaseFiles(config), RESERVE])
  await refuseLinks(root, leftOut)
  const copier = new Copier({ dataDir: root, target: join(folder, CONTENT), leftOut, commands, disk })
  const database = await copyAll({ config, folder, commands, disk }, copier)
  if (configFile !== undefined) await copyFile(configFile, join(folder, 'berth.yaml'))
  const { entries, torn } = await copier.result()
  // A restore may have begun meanwhile.
  await requireFinished(root)
  await commands.run('sync', ['--file-system', folder])
  const { uid, gid } = await stat(root)
  const manifest: Manifest = {
    format: 1, madeBy: version, madeAt: new Date().toISOString(), dataDir: root, bootId: bootId(), owner: { uid, gid }, torn, entries,
    database: { file: database, checksum: await checksumOf(join(folder, database)) }
  }
  await writeManifest(folder, manifest)
  return manifest
}

async function prepareFolder (folder: string, dataDir: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if ((await readdir(folder)).length > 0) throw new BackupFailed(`${folder} is not empty: name a folder that does not exist`)
  if (!relative(dataDir, await realpath(folder)).startsWith('..')) throw new BackupFailed(`${folder} is in the data folder that it would be a backup of`)
  await mkdir(join(folder, CONTENT), { mode: 0o700 })
}

/** What such a link leads to would not be in the backup, and a restore beside the original would lead into the original's files. */
async function refuseLinks (root: string, leftOut: ReadonlySet<string>): Promise<void> {
  const link = (await readdir(root, { withFileTypes: true })).find((entry) => entry.isSymbolicLink() && !leftOut.has(entry.name))
  if (link === undefined) return
  throw new BackupFailed(`${join(root, link.name)} is a symbolic link, and what it leads to would not be in the backup: mount that folder here instead (mount --bind), or move the whole data folder and name it in server.dataDir`)
}

interface DatabaseCopy {
  readonly path: string
  readonly name: Manifest['database']['file']
  /** of the rows that stand for files of this host, no earlier than the copy */
  readonly checksum: string
}

/** @returns the name of the database's copy */
async function copyAll (options: { config: Config, folder: string, commands: HostCommands, disk: DiskSpace }, copier: Copier): Promise<Manifest['database']['file']> {
  const { folder } = options
  let before = await copyDatabase(options, 'before')
  let changed = ''
  for (let passes = 0; passes < MOST_PASSES; passes++) {
    await copier.pass()
    const after = await copyDatabase(options, 'after')
    const isSame = after.checksum === before.checksum
    await rename(after.path, before.path)
    before = { ...after, path: before.path }
    const path = isSame ? await copier.changed() : undefined
    if (!isSame || path !== undefined) {
      changed = path === undefined ? 'its database' : join('its data folder', path)
      if (isSame) await sleep(passes * REST_MS)
      continue
    }
    await rename(before.path, join(folder, before.name))
    return before.name
  }
  throw new BackupFailed(`the server changed ${changed} during the last of ${MOST_PASSES} attempts to copy the files, and something during each: try again when it has less to do`)
}

async function copyDatabase ({ config, folder, commands, disk }: { config: Config, folder: string, commands: HostCommands, disk: DiskSpace }, name: string): Promise<DatabaseCopy> {
  const { server: { dataDir }, database: { url } } = config
  const absolute = databaseUrl(url, dataDir)
  const file = sqliteFile(url, dataDir)
  if (file !== undefined && !await isThere(file)) throw new BackupFailed(`there is no database ${file}`)
  const path = join(folder, `.database.${name}.tmp`)
  await rm(path, { force: true })
  const database = openDatabase(absolute)
  try {
    await disk.check({ bytes: await copyBytes(database), inodes: 1 })
    await writeCopy(database, { url: absolute, commands, to: path })
    return file === undefined
      ? { path, name: 'database.sql', checksum: await checksumOfHost(database, await hostIdOf(dataDir)) }
      : { path, name: 'database.db', checksum: await checksumOf(path) }
  } finally {
    await database.destroy()
  }
}

async function hostIdOf (dataDir: string): Promise<string> {
  const id = await findHostId(dataDir)
  if (id === undefined) throw new BackupFailed(`${dataDir} has no file host-id, by which the database names this host: no server has used it`)
  return id
}
