// The incoming side of a WebSocket as an async queue with back-pressure, and the outgoing side as awaitable sends.
import type { RawData, WebSocket } from 'ws'
import { ownMemory } from '../../../core/library/own-memory.ts'

export interface Message { readonly data: Buffer, readonly binary: boolean }

const PAUSE_ABOVE_BYTES = 512 * 1024
/** what a message takes beside its content, of which it may have none */
const MESSAGE_BYTES = 256
const WAIT_ABOVE_BYTES = 512 * 1024
// Without traffic a dead client would never be noticed, and its command would run for ever.
const PING_MS = 15_000
const ROUND_TRIP_LIMIT_MS = 5000

export class MessageStream {
  /** aborts when the socket has closed */
  readonly closed: AbortSignal
  readonly #socket: WebSocket
  readonly #queue: Message[] = []
  #queuedBytes = 0
  #paused = false
  #closing = false
  #wake: (() => void) | undefined
  #roundTrips = 0

  constructor (socket: WebSocket, pingMs = PING_MS) {
    this.#socket = socket
    const gone = new AbortController()
    this.closed = gone.signal
    let alive = true
    socket.on('message', (data, binary) => {
      // A client that sends may not read before it has sent all, as the Go SDK in a copy, or its pong waits behind all that it sends.
      alive = true
      this.#push({ data: asBuffer(data), binary })
    })
    // The connection or a frame is broken; `close` follows.
    socket.on('error', () => {})
    socket.on('pong', () => { alive = true })
    const pinger = setInterval(() => {
      // A paused socket cannot receive the pong, and a client that reads slowly, or not for a while, has not received the ping. There the kernel tells when the client is gone.
      if (!alive && !this.#paused && socket.bufferedAmount === 0) return socket.terminate()
      alive = false
      socket.ping()
    }, pingMs)
    socket.on('close', () => {
      clearInterval(pinger)
      gone.abort()
      this.#wake?.()
    })
  }

  /** The next message; `undefined` once the socket has closed and all have been taken, or after `signal` aborts. */
  async next (signal?: AbortSignal): Promise<Message | undefined> {
    while (this.#queue.length === 0 && !this.closed.aborted && signal?.aborted !== true) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          signal?.removeEventListener('abort', done)
          this.#wake = undefined
          resolve()
        }
        this.#wake = done
        signal?.addEventListener('abort', done)
      })
    }
    const message = this.#queue.shift()
    if (message === undefined) return undefined
    this.#queuedBytes -= message.data.length + MESSAGE_BYTES
    if (this.#paused && this.#queuedBytes <= PAUSE_ABOVE_BYTES / 2) this.#resume()
    return message
  }

  /** Sends and, when the client reads slowly, waits until most of it has been taken. */
  async sendBinary (data: Buffer): Promise<void> {
    await this.#send(data, { binary: true })
  }

  async sendJson (value: unknown): Promise<void> {
    await this.#send(JSON.stringify(value), { binary: false })
  }

  /** Returns when the client has handled everything that was sent so far, or after a while when it answers no ping. */
  async roundTrip (): Promise<void> {
    const socket = this.#socket
    if (socket.readyState !== socket.OPEN) return
    const payload = Buffer.from(String(this.#roundTrips++))
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        socket.off('pong', answered)
        this.closed.removeEventListener('abort', done)
        resolve()
      }
      const answered = (data: Buffer): void => { if (data.equals(payload)) done() }
      const timer = setTimeout(done, ROUND_TRIP_LIMIT_MS)
      socket.on('pong', answered)
      this.closed.addEventListener('abort', done)
      socket.ping(payload)
    })
  }

  close (code: number, reason = ''): void {
    // A paused socket would never receive the client's answer to the close. Messages that still come before it are dropped.
    this.#closing = true
    this.#queue.length = 0
    this.#resume()
    this.#socket.close(code, reason)
  }

  async #send (data: Buffer | string, options: { readonly binary: boolean }): Promise<void> {
    const socket = this.#socket
    if (socket.readyState !== socket.OPEN) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.closed.removeEventListener('abort', done)
        resolve()
      }
      // The callback comes as soon as the kernel has the bytes.
      socket.send(data, options, done)
      if (socket.bufferedAmount < WAIT_ABOVE_BYTES) resolve()
      else this.closed.addEventListener('abort', done)
    })
  }

  #push (message: Message): void {
    if (this.#closing) return
    // One that nobody waits for may wait long, for a guest that takes no more.
    this.#queue.push(this.#wake !== undefined && this.#queue.length === 0 ? message : { ...message, data: ownMemory(message.data) })
    this.#queuedBytes += message.data.length + MESSAGE_BYTES
    if (!this.#paused && this.#queuedBytes > PAUSE_ABOVE_BYTES) {
      this.#paused = true
      this.#socket.pause()
    }
    this.#wake?.()
  }

  #resume (): void {
    if (!this.#paused) return
    this.#paused = false
    this.#socket.resume()
  }
}

function asBuffer (data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
