// Relays one local connection to a port of the guest: plugins/instances/README.md, "forward", has the messages.
import type { Socket } from 'node:net'
import type WebSocket from 'ws'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { parseJson } from '../api/json.ts'
import { onMessage, openSocket } from '../api/socket.ts'
import { Failure } from '../failure.ts'
import { lost } from '../api/failures.ts'

const MAX_CHUNK = 64 * 1024
/** how many bytes may wait in this process until the server reads them */
const MAX_WAITING = 1024 * 1024

/** Resolves when both sides have ended. The local connection is cut when nobody listens in the guest. */
export async function relay (api: Api, instance: string, port: number, caller: Socket, ended: AbortSignal): Promise<void> {
  const over = new AbortController()
  const stop = (): void => over.abort()
  ended.addEventListener('abort', stop, { once: true })
  // The local client may be gone before the server has answered: that ends this connection, and not the others of this command.
  caller.once('error', stop)
  try {
    const socket = await openSocket(api, `${path`/instances/${instance}/forward`}?port=${port}`, over.signal)
    await passOn(api, socket, caller)
  } catch (error) {
    if (caller.errored !== null) return
    caller.resetAndDestroy()
    throw error
  } finally {
    ended.removeEventListener('abort', stop)
    over.abort()
  }
}

async function passOn (api: Api, socket: WebSocket, caller: Socket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    caller.on('data', (chunk: Buffer) => {
      for (let from = 0; from < chunk.length; from += MAX_CHUNK) {
        socket.send(chunk.subarray(from, from + MAX_CHUNK), { binary: true }, () => { if (socket.bufferedAmount < MAX_WAITING) caller.resume() })
      }
      if (socket.bufferedAmount >= MAX_WAITING) caller.pause()
    })
    caller.once('end', () => { if (socket.readyState === socket.OPEN) socket.send('{"end":true}') })
    // The local client is gone, so the connection to the guest ends, too.
    caller.once('error', () => { socket.terminate() })
    caller.once('close', (hadError) => { if (hadError) resolve() })
    onMessage(socket, reject, (bytes, isBinary) => {
      if (isBinary) {
        if (caller.write(bytes)) return
        socket.pause()
        caller.once('drain', () => socket.resume())
        return
      }
      const { end, error } = parseJson<{ readonly end?: boolean, readonly error?: string }>(bytes.toString())
      if (error !== undefined) reject(new Failure(error))
      else if (end === true) caller.end()
    })
    socket.once('close', (code) => {
      if (code === 1000 || caller.destroyed) resolve()
      else reject(lost(api.target, 'while it passed a connection on'))
    })
    socket.resume()
  })
}
