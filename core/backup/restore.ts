// Puts a backup into an empty data folder and its database. After a kill at any moment the same command starts again; no server starts on a half-restored folder.
import { chmod, chown, copyFile, lchown, link, lstat, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { databaseUrl, sqliteFile } from '../config/database-url.ts'
import { sizeBytes } from '../config/quantities.ts'
import type { Config } from '../config/schema.ts'
import type { HostCommands } from '../contracts/services.ts'
import { prepareCopies } from '../data/copies/kept.ts'
import { lockDataFolder } from '../data/lock.ts'
import { noteRestored } from '../data/restored.ts'
import { withoutOtherHosts } from '../data/running-hosts.ts'
import { isUnfinished, markFinished, markUnfinished } from '../data/unfinished.ts'
import { loadMysql, loadSqlite } from '../db/copy/load-copy.ts'
import { openDatabase } from '../db/open.ts'
import { hasCode } from '../errors/system-code.ts'
import { createDiskSpace } from '../fs/disk-space.ts'
import { removeTree } from '../fs/durable.ts'
import { isThere } from '../fs/is-there.ts'
import { giveToOwner } from '../fs/owner.ts'
import { copySparse } from '../fs/sparse-copy.ts'
import { bootId } from '../process/identity.ts'
import { checksumOf } from './checksum.ts'
import { databaseFiles } from './database-files.ts'
import { BackupUnusable, CONTENT, readManifest, type Entry, type Manifest } from './manifest.ts'
import { setTimes } from './times.ts'
import { OF_THE_LOCK } from './tree.ts'
import { workplaces } from './workplaces.ts'

const LARGE_BYTES = 2 ** 20

/** Nothing was restored; the message says why. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused'
}

export interface RestoreOptions {
  readonly config: Config
  readonly folder: string
  readonly commands: HostCommands
}

/** The backup is checked first. @throws BackupUnusable, RestoreRefused */
export async function checkBackup ({ config, folder }: RestoreOptions): Promise<Manifest> {
  const manifest = await readManifest(folder)
  if ((manifest.database.file === 'database.db') !== (sqliteFile(config.database.url, config.server.dataDir) !== undefined)) {
    throw new RestoreRefused(`the backup holds ${manifest.database.file}, which is of another kind of database than the configured one`)
  }
  refuseOwnFiles(config, manifest)
  await refuseBesideOriginal(manifest)
  await requireWhole(folder, manifest)
  return manifest
}

/** The caller holds the lock of the data folder, which must be empty but for that. @throws RestoreRefused, RestoreUnfinished, DatabaseInUse */
export async function restoreBackup ({ config, folder, commands }: RestoreOptions, { entries, database, bootId: boot, owner }: Manifest): Promise<void> {
  const { server: { dataDir, minFree, minFreeInodes }, database: { url } } = config
  await requireEmpty(config)
  // Before the disk is asked: what an unfinished restore has left takes the room that this one needs.
  for (const name of await contentOf(dataDir)) await removeTree(join(dataDir, name))
  const files = entries.filter((entry) => entry.kind === 'file' && entry.sameAs === undefined)
  const disk = createDiskSpace(dataDir, { bytes: sizeBytes(minFree), inodes: minFreeInodes })
  // Their holes stay holes, so the restored files take less than this.
  await disk.check({ bytes: await allocated(folder, files.map(({ path }) => path)), inodes: entries.length })
  await markUnfinished(dataDir, 'restore', folder)
  if (owner !== undefined && process.getuid?.() === 0) await chown(dataDir, owner.uid, owner.gid)
  for (const entry of entries) await putBack(commands, folder, dataDir, entry)
  await setTimes(commands, dataDir, entries.filter((entry) => entry.kind === 'file'))
  const copy = join(folder, database.file)
  const file = sqliteFile(url, dataDir)
  if (file === undefined) await fillMysql(commands, copy, { url: databaseUrl(url, dataDir), folder: await prepareCopies(dataDir) })
  else await loadSqlite(copy, file)
  await commands.run('sync', ['--file-system', dataDir])
  await noteRestored(dataDir, boot)
  await giveRest(dataDir, entries)
  await markFinished(dataDir)
}

/**
 * No backup has the files of the lock and of the database, which are opened here: a link in the place of one, or of a folder that it is in, would lead to a file elsewhere. Nor has it a link in the data folder itself, as
 * there is none of a server's: it would make, and remove, files wherever that leads.
 */
function refuseOwnFiles (config: Config, { entries }: Manifest): void {
  const own = new Set([...OF_THE_LOCK, ...databaseFiles(config)])
  const above = (path: string): boolean => [...own].some((file) => file.startsWith(`${path}/`))
  const found = entries.find(({ kind, path }) => own.has(path) || (kind === 'link' && (!path.includes('/') || above(path))))
  if (found !== undefined) throw new BackupUnusable(`the backup names ${JSON.stringify(found.path)}${found.kind === 'link' ? ' as a symbolic link' : ''} in the place of the server's own files, as no backup does`)
}

/** On the same machine, since the same boot, the processes that the backup names may be those of the original server, and a second server would take them for its own. */
async function refuseBesideOriginal (manifest: Manifest): Promise<void> {
  if (manifest.bootId !== bootId() || !await isThere(manifest.dataDir)) return
  // A server that runs there holds this lock.
  await (await lockDataFolder(manifest.dataDir)).release()
  const [place] = await workplaces(manifest.dataDir)
  if (place !== undefined) throw new RestoreRefused(`processes of the original run in ${join(manifest.dataDir, place)}: stop its server and its machines first, or restore on another machine`)
}

async function requireWhole (folder: string, { entries, database }: Manifest): Promise<void> {
  const expected = [{ path: database.file, checksum: database.checksum }, ...entries.flatMap((entry) => entry.kind === 'file' && entry.sameAs === undefined ? [{ path: join(CONTENT, entry.path), checksum: entry.checksum }] : [])]
  for (const { path, checksum } of expected) {
    const found = await isThere(join(folder, path)) ? await checksumOf(join(folder, path)) : undefined
    if (found !== checksum) throw new BackupUnusable(`the backup is damaged: ${join(folder, path)} is ${found === undefined ? 'gone' : 'not what was written there'}`)
  }
}

/** What an unfinished restore has left is not counted. @throws RestoreRefused, RestoreUnfinished */
export async function requireEmpty ({ server: { dataDir }, database: { url } }: Config): Promise<void> {
  if (!await isThere(dataDir) || await isUnfinished(dataDir, 'restore')) return
  const [name] = await contentOf(dataDir)
  if (name !== undefined) throw new RestoreRefused(`${dataDir} is not empty (${name}): a backup is put into an empty data folder only`)
  const file = sqliteFile(url, dataDir)
  if (file !== undefined ? await isThere(file) : await hasTables(url)) throw new RestoreRefused('the configured database is not empty: a backup is put into an empty one only')
}

/** What an unfinished restore has left in the database may have led the server of another host to start on it. */
async function fillMysql (commands: HostCommands, copy: string, place: { readonly url: string, readonly folder: string }): Promise<void> {
  await withoutOtherHosts(place.url, undefined, async () => { await loadMysql(commands, copy, place) })
}

/** The names in the folder, without the lock's files and without the folder of keys while it is empty. */
async function contentOf (dataDir: string): Promise<string[]> {
  const names = (await readdir(dataDir)).filter((name) => !OF_THE_LOCK.has(name))
  const isKeyless = names.includes('keys') && (await readdir(join(dataDir, 'keys'))).length === 0
  return isKeyless ? names.filter((name) => name !== 'keys') : names
}

async function hasTables (url: string): Promise<boolean> {
  const database = openDatabase(url)
  try {
    return await database.schema.hasTable('core_migrations')
  } finally {
    await database.destroy()
  }
}

async function allocated (folder: string, paths: readonly string[]): Promise<number> {
  let bytes = 0
  for (const path of paths) bytes += (await lstat(join(folder, CONTENT, path))).blocks * 512
  return bytes
}

async function putBack (commands: HostCommands, folder: string, dataDir: string, entry: Entry): Promise<void> {
  const to = join(dataDir, entry.path)
  switch (entry.kind) {
    case 'folder':
      await mkdir(to, { recursive: true })
      break
    case 'link':
      await symlink(entry.target, to)
      await lchown(to, entry.uid, entry.gid)
      return
    case 'file': {
      if (entry.sameAs !== undefined && await addName(join(dataDir, entry.sameAs), to)) return
      const from = join(folder, CONTENT, entry.sameAs ?? entry.path)
      if (entry.bytes < LARGE_BYTES) await copyFile(from, to)
      else await copySparse(commands, from, to)
      break
    }
  }
  // The owner first: changing the owner clears bits of the mode.
  await chown(to, entry.uid, entry.gid)
  await chmod(to, entry.mode)
}

/** What no backup has, as the lock and the database, was made by whoever ran the command. */
async function giveRest (dataDir: string, entries: readonly Entry[]): Promise<void> {
  const given = new Set(entries.map(({ path }) => path))
  for (const name of await readdir(dataDir)) if (!given.has(name)) await giveToOwner(join(dataDir, name))
}

/** False where the file system gives a file no further name. */
async function addName (file: string, name: string): Promise<boolean> {
  try {
    await link(file, name)
    return true
  } catch (error) {
    if (hasCode(error, 'EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP')) return false
    throw error
  }
}
