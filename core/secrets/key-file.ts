// The key of all secrets at rest: a file that is made once and is complete from its first moment on. It is refused unless it is the server's alone.
import { randomBytes, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, open, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import { syncFolder } from '../fs/durable.ts'

export const KEY_BYTES = 32

/**
 * The key in `path`, which is made when it does not exist.
 * @throws Error that names the file and what to do, when others can read it, or its content is not a valid key
 */
export async function openKey (path: string): Promise<Buffer> {
  const existing = await readKey(path)
  if (existing !== undefined) return existing
  await makeKey(path)
  const made = await readKey(path)
  if (made === undefined) throw new Error(`${path} was made, and is gone again`)
  return made
}

/**
 * Writes the key under a temporary name and links it to its own name once it is on disk, and only if that name is free: a key in use is never replaced.
 * A kill in between leaves a file with a temporary name, which has no meaning.
 */
async function makeKey (path: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await handle.writeFile(randomBytes(KEY_BYTES))
      await handle.sync()
    } finally {
      await handle.close()
    }
    await linkUnlessThere(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  await syncFolder(dirname(path))
}

async function linkUnlessThere (temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

async function readKey (path: string): Promise<Buffer | undefined> {
  const handle = await openIfThere(path)
  if (handle === undefined) return undefined
  try {
    await checkFile(handle, path)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

async function openIfThere (path: string): Promise<FileHandle | undefined> {
  try {
    // O_NOFOLLOW and O_NONBLOCK: a link is not followed, and opening a pipe does not wait for its other end.
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    if (hasCode(error, 'ELOOP')) throw new Error(`${path} is a symbolic link: put the key itself there`, { cause: error })
    if (hasCode(error, 'EACCES', 'EPERM')) throw new Error(`${path} cannot be read by this server: give it to the server's user (chown) with mode 600`, { cause: error })
    throw error
  }
}

async function checkFile (handle: FileHandle, path: string): Promise<void> {
  const found = await handle.stat()
  const own = process.getuid?.()
  if (!found.isFile()) throw new Error(`${path} is not a file: put the key of this server back from a backup`)
  if (own !== undefined && found.uid !== own) {
    throw new Error(`${path} belongs to user ${found.uid} instead of ${own}: if nobody else can have read it, give it to the server (chown ${own} ${path})`)
  }
  if ((found.mode & 0o077) !== 0) {
    throw new Error(`${path} has mode ${(found.mode & 0o777).toString(8)}, so others may have read the key of all stored secrets: if nobody has, set it to 600 (chmod 600 ${path})`)
  }
  if (found.size !== KEY_BYTES) {
    throw new Error(`${path} has ${found.size} bytes instead of ${KEY_BYTES}: put it back from a backup, or remove it if no stored secret is needed any more`)
  }
}
