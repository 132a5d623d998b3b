// A WebSocket of the API: exec and cp.
import WebSocket, { type RawData } from 'ws'
import { late, lost, refusalOf, unreachable } from './failures.ts'
import type { Api } from './client.ts'
import { addressOf } from './path.ts'

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024
const MAX_REFUSAL_BYTES = 64 * 1024
/** A server answers an upgrade at once: what takes time comes behind it. */
const HANDSHAKE_MS = 30_000
/** A server pings every 15 s. */
const SILENCE_MS = 60_000
/** into which that time is divided */
const PARTS = 4

/**
 * Opens one; a refusal before the upgrade is the server's own error. It is paused: what the server says at once may come in one packet with the upgrade, and would be lost
 * before the caller listens. The caller resumes it.
 */
export async function openSocket (api: Api, path: string, signal: AbortSignal, { handshakeMs = HANDSHAKE_MS, silenceMs = SILENCE_MS }: { readonly handshakeMs?: number, readonly silenceMs?: number } = {}): Promise<WebSocket> {
  const { target } = api
  const url = addressOf(target.url, path)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const given = new AbortController()
  const socket = new WebSocket(url, { ...api.opening(AbortSignal.any([signal, given.signal])), maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false })
  const end = (): void => socket.terminate()
  signal.addEventListener('abort', end, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', end))
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(late(target, handshakeMs)), handshakeMs)
      socket.once('open', () => {
        socket.pause()
        resolve()
      })
      // Further ones may follow, of a socket that was given up.
      socket.on('error', (error) => reject(unreachable(target, error)))
      socket.once('unexpected-response', (request, answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => { if (text.length < MAX_REFUSAL_BYTES) text += chunk })
        answer.on('error', () => undefined)
        answer.once('end', () => {
          reject(refusalOf(answer.statusCode ?? 500, text))
          request.destroy()
        })
        // Of half an answer there is no end.
        answer.once('close', () => reject(lost(target, 'in the middle of an answer')))
      })
    })
  } catch (error) {
    given.abort()
    socket.terminate()
    throw error
  } finally {
    clearTimeout(timer)
  }
  endInSilence(socket, silenceMs)
  return socket
}

/** Ends it when nothing more is heard of a server that has pinged: its host or the network is gone. An older server, or what stands before it, may send no pings, and while nobody reads nothing can be heard. */
function endInSilence (socket: WebSocket, silenceMs: number): void {
  let silentParts = 0
  const heard = (): void => { silentParts = 0 }
  socket.on('message', heard).on('ping', heard)
  socket.once('ping', () => {
    // In parts: when this process was held up for long, what has arrived meanwhile is read before the next one is over.
    const timer = setInterval(() => {
      if (socket.isPaused) heard()
      else if (++silentParts > PARTS) socket.terminate()
    }, silenceMs / PARTS)
    socket.once('close', () => clearInterval(timer))
  })
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
