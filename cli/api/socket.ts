// A WebSocket of the API: exec and cp.
import WebSocket, { type RawData } from 'ws'
import { unreachable, refusalOf } from './failures.ts'
import type { Api } from './client.ts'
import { addressOf } from './path.ts'

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024
const MAX_REFUSAL_BYTES = 64 * 1024

/**
 * Opens one; a refusal before the upgrade is the server's own error. It is paused: what the server says at once may come in one packet with the upgrade, and would be lost
 * before the caller listens. The caller resumes it.
 */
export async function openSocket (api: Api, path: string, signal: AbortSignal): Promise<WebSocket> {
  const { target } = api
  const url = addressOf(target.url, path)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(url, { ...api.opening(signal), maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false })
  signal.addEventListener('abort', () => socket.terminate(), { once: true })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => {
      socket.pause()
      resolve()
    })
    socket.once('error', (error) => reject(unreachable(target, error)))
    socket.once('unexpected-response', (request, answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => { if (text.length < MAX_REFUSAL_BYTES) text += chunk })
      answer.once('end', () => {
        reject(refusalOf(answer.statusCode ?? 500, text))
        request.destroy()
      })
    })
  })
  socket.on('error', () => undefined)
  return socket
}

/** Calls `take` with each message. What it throws is told to `fail`: it ends the caller's work, and not the program. */
export function onMessage (socket: WebSocket, fail: (error: unknown) => void, take: (bytes: Buffer, isBinary: boolean) => void): void {
  socket.on('message', (data, isBinary) => {
    try {
      take(bytesOf(data), isBinary)
    } catch (error) {
      fail(error)
    }
  })
}

/** A message as one buffer, however it came. */
function bytesOf (data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
