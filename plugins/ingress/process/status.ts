// Asks nginx for its figures, over a socket of its own.
import { get, IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import { STATUS_SOCKET } from './paths.ts'

const TIMEOUT_MS = 2000

export async function trafficOf (folder: string): Promise<{ connections: number, requests: number } | undefined> {
  try {
    const socket = await connectUnix(folder, STATUS_SOCKET)
    // No `agent: false`: that stands for a new agent, which makes a connection of its own in place of taking this one.
    const request = get({ createConnection: () => socket, path: '/status', host: 'nginx', headers: { connection: 'close' }, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const [response] = await once(request, 'response')
    if (!(response instanceof IncomingMessage)) return undefined
    // Active connections: 1 … accepts handled requests … three numbers
    const [connections, , , requests] = (await text(response)).split(/\s+/).filter((word) => /^\d+$/.test(word)).map(Number)
    return connections === undefined || requests === undefined ? undefined : { connections, requests }
  } catch {
    return undefined
  }
}
