// Makes the data folder and what every server needs in it before anything else: `keys/` and the host's id.
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileDurably } from '../fs/durable.ts'
import { readIfThere } from '../fs/read-if-there.ts'

/**
 * Makes the data folder. Other users may pass through it (VMs run as users of their own and open files by name) but not list
 * it; `keys/` is for the server alone. A folder that exists keeps its mode.
 */
export async function prepareDataFolder (dataDir: string): Promise<void> {
  await makeFolder(dataDir, 0o711)
  await makeFolder(join(dataDir, 'keys'), 0o700)
}

/** Makes an empty file that only the server may read; a database opened there keeps that mode, and so do its journals. */
export async function reserveFile (path: string): Promise<void> {
  const handle = await open(path, 'a', 0o600)
  await handle.close()
}

/** The id of this host: made once, at random, and never changed, since rows in the database refer to it. */
export async function readHostId (dataDir: string): Promise<string> {
  const existing = await findHostId(dataDir)
  if (existing !== undefined) return existing
  const id = randomBytes(12).toString('hex')
  await writeFileDurably(hostIdFile(dataDir), `${id}\n`)
  return id
}

/** `undefined` for a folder that no server has used yet. */
export async function findHostId (dataDir: string): Promise<string | undefined> {
  const file = hostIdFile(dataDir)
  const existing = (await readIfThere(file))?.trim()
  if (existing !== undefined && !/^[0-9a-f]{24}$/.test(existing)) throw new Error(`${file} does not hold a host id; put it back from a backup, since the database names this host by it`)
  return existing
}

function hostIdFile (dataDir: string): string {
  return join(dataDir, 'host-id')
}

async function makeFolder (path: string, mode: number): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode })
  // The process's umask cuts the mode given to mkdir.
  if (made !== undefined) await chmod(path, mode)
}
