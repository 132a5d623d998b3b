// Unix sockets in folders of any depth. A socket's path is limited to 107 bytes, so the socket is named through an open folder.
import { once } from 'node:events'
import { open, type FileHandle } from 'node:fs/promises'
import { constants } from 'node:fs'
import { connect, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { hasCode } from '../errors/system-code.ts'

/** a flag of open(2); the same on all of Linux's 64-bit architectures, and missing from Node's constants */
const O_PATH = 0o10000000

/** The file at the place of a socket is not a socket, or has another owner. */
export class NotASocket extends Error {
  override readonly name = 'NotASocket'
}

/**
 * Connects to the socket `name` in `folder`. A later error may be followed by the socket's `close` only.
 *
 * The folder may belong to a hostile user, who can replace the file at any moment: so the checked file is the one that is connected to. A link is not followed, and
 * the socket must belong to the folder's owner.
 * @throws NotASocket; Error with the code ECONNRESET when the connection was closed at once
 */
export async function connectUnix (folder: string, name: string): Promise<Socket> {
  const socket = await connectChecked(folder, name)
  // `close` may have been emitted while files were closed here, and a caller that waits for it now would wait for ever: an HTTP request of Node's does, in spite of its signal.
  if (socket.destroyed) throw Object.assign(new Error(`${join(folder, name)} closed the connection at once`), { code: 'ECONNRESET' })
  return socket
}

/** Whether a process accepts connections at the socket `name` in `folder`. @throws NotASocket */
export async function takesConnections (folder: string, name: string): Promise<boolean> {
  try {
    (await connectUnix(folder, name)).destroy()
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EAGAIN')) return false
    throw error
  }
}

async function connectChecked (folder: string, name: string): Promise<Socket> {
  const handle = await openFolder(folder)
  try {
    const found = await open(`/proc/self/fd/${handle.fd}/${name}`, O_PATH | constants.O_NOFOLLOW)
    try {
      await checkSocket(found, handle, join(folder, name))
      const socket = connect(`/proc/self/fd/${found.fd}`)
      // Set at once: nobody would handle a reset while the folder is being closed, and it would end the server.
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    } finally {
      await found.close()
    }
  } finally {
    await handle.close()
  }
}

async function checkSocket (found: FileHandle, folder: FileHandle, path: string): Promise<void> {
  const [facts, { uid }] = await Promise.all([found.stat(), folder.stat()])
  if (!facts.isSocket()) throw new NotASocket(`${path} is no socket`)
  // In a folder of root's, root made every file. In any other folder, a socket of another user's would be a hard link.
  if (uid !== 0 && facts.uid !== uid) throw new NotASocket(`${path} belongs to user ${facts.uid}, and its folder to user ${uid}`)
}

/**
 * Makes `server` listen on the socket `name` in `folder`. The folder stays open until the server has closed: libuv removes
 * the socket by the path that it was given, and a reused descriptor number would make that another file.
 */
export async function listenUnix (server: Server, folder: string, name: string): Promise<void> {
  const handle = await openFolder(folder)
  const release = (): void => { handle.close().catch((error: unknown) => server.emit('error', error)) }
  server.listen(`/proc/self/fd/${handle.fd}/${name}`)
  try {
    await once(server, 'listening')
  } catch (error) {
    release()
    throw error
  }
  server.once('close', release)
}

function openFolder (folder: string): ReturnType<typeof open> {
  return open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
}
