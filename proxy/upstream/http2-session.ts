// One HTTP/2 session to an origin. It lets its connection go with its last stream: Node waits for the origin to close it.
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type ClientSessionRequestOptions, type OutgoingHttpHeaders } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { endWhenGivenUp } from './given-up.ts'

// What an origin may send ahead, on a stream and on all of a connection. Node's own 64 KiB would slow every download, and with 256 KiB an origin on the
// same machine waits for the window now and then (0.45 of a direct download, 0.54 with this); but the window of a stream is held here for each request whose guest does not read.
const WINDOW_BYTES = 512 * 1024
const CONNECTION_WINDOW_BYTES = 1024 * 1024

export class OriginSession {
  readonly #session: ClientHttp2Session
  readonly #letGo: () => void
  #streams = 0
  /** what the origin has said in a GOAWAY: its code, and the last of its streams that it may have processed */
  #farewell: { readonly code: number, readonly last: number } | undefined

  /** @param letGo is called when the connection is used no more */
  constructor (socket: TLSSocket, letGo: () => void) {
    this.#letGo = letGo
    // Guests ask for no pushes.
    const session = connect('https://origin.invalid', { createConnection: () => socket, settings: { enablePush: false, initialWindowSize: WINDOW_BYTES } })
    this.#session = session
    // The session may have ended before.
    session.once('connect', () => { if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES) })
    // Streams get the error themselves; without a listener it would end the program.
    session.on('error', () => {
      session.destroy()
      this.#leave()
    })
    session.on('goaway', (code: number, last: number) => {
      this.#farewell = { code, last }
      session.close()
      this.#leave()
    })
    endWhenGivenUp(session, letGo)
  }

  /** Whether it takes requests. */
  get usable (): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  request (headers: OutgoingHttpHeaders, options: ClientSessionRequestOptions): ClientHttp2Stream {
    const stream = this.#session.request(headers, options)
    this.#streams++
    stream.once('close', () => {
      this.#streams--
      this.#leave()
    })
    return stream
  }

  /** Whether the origin has said that it has not processed the request of a stream that is closed: it may be sent again, whatever it asks for (RFC 9113, 6.8 and 8.7). */
  isUnprocessed (stream: ClientHttp2Stream): boolean {
    const farewell = this.#farewell
    if (farewell !== undefined && stream.id !== undefined && stream.id > farewell.last) return true
    // Node gives the code of a GOAWAY to all streams.
    return stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && farewell?.code !== constants.NGHTTP2_REFUSED_STREAM
  }

  destroy (): void {
    this.#session.destroy()
  }

  #leave (): void {
    if (!this.usable && this.#streams === 0) this.#letGo()
  }
}
