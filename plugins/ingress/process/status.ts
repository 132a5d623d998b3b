// Asks nginx for its figures, over a socket of its own. No agent: one of its own would dial the name of the host.
import { get, IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import { STATUS_SOCKET } from './paths.ts'

const TIMEOUT_MS = 2000

export async function trafficOf (folder: string): Promise<{ connections: number, requests: number } | undefined> {
  try {
    const socket = await connectUnix(folder, STATUS_SOCKET)
    const request = get({ createConnection: () => socket, path: '/status', host: 'nginx', signal: AbortSignal.timeout(TIMEOUT_MS) })
    const [response] = await once(request, 'response')
    if (!(response instanceof IncomingMessage)) return undefined
    // Active connections: 1 … accepts handled requests … three numbers
    const numbers = (await text(response)).split(/\s+/).filter((word) => /^\d+$/.test(word)).map(Number)
    return { connections: numbers[0] ?? 0, requests: numbers[3] ?? 0 }
  } catch {
    return undefined
  }
}
