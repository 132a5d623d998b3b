// Unix sockets in folders of any depth. A socket's path is limited to 107 bytes, so it is named through an open folder.
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { constants } from 'node:fs'
import { connect, type Server, type Socket } from 'node:net'

/** Connects to the socket `name` in `folder`. Errors after that may be heard by the socket's `close` alone. */
export async function connectUnix (folder: string, name: string): Promise<Socket> {
  const handle = await openFolder(folder)
  try {
    const socket = connect(`/proc/self/fd/${handle.fd}/${name}`)
    // From its first moment: a reset while the folder is being closed would be nobody's, and end the server.
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  } finally {
    await handle.close()
  }
}

/**
 * Lets `server` listen on the socket `name` in `folder`. The folder stays open until the server has closed: libuv removes
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
  return open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
}
