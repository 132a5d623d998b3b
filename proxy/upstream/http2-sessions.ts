// The HTTP/2 session to an origin, and whether the origin speaks HTTP/2 at all.
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { endWhenGivenUp } from './given-up.ts'
import { openings } from '../audit/exchange-trace.ts'

// How long an origin that chose HTTP/1.1 is not offered HTTP/2 again.
const REMEMBER_MS = 10 * 60 * 1000
// What an origin may send ahead, on a stream and on all of a connection. Node's own 64 KiB would slow every download, and with 256 KiB an origin on the
// same machine waits for the window now and then (0.45 of a direct download, 0.54 with this); but the window of a stream is held here for each request whose guest does not read.
const WINDOW_BYTES = 512 * 1024
const CONNECTION_WINDOW_BYTES = 1024 * 1024

/** What origins have said in a GOAWAY: its code, and the last of their streams that they may have processed. */
const farewells = new WeakMap<ClientHttp2Session, { readonly code: number, readonly last: number }>()

/** Whether the origin has said that it has not processed the request of a stream that is closed: it may be sent again, whatever it asks for (RFC 9113, 6.8 and 8.7). */
export function isUnprocessed (stream: ClientHttp2Stream, session: ClientHttp2Session): boolean {
  const farewell = farewells.get(session)
  if (farewell !== undefined && stream.id !== undefined && stream.id > farewell.last) return true
  // Node gives the code of a GOAWAY to all streams.
  return stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && farewell?.code !== constants.NGHTTP2_REFUSED_STREAM
}

export class Http2Sessions {
  readonly #connect: () => Promise<Socket | TLSSocket>
  readonly #giveBack: (socket: Socket | TLSSocket) => void
  #session: ClientHttp2Session | undefined
  #opening: Promise<ClientHttp2Session | undefined> | undefined
  #http1UntilMs = 0

  /** `connect` offers both protocols; a connection on which the origin chose HTTP/1.1 goes to `giveBack`. */
  constructor (connect: () => Promise<Socket | TLSSocket>, giveBack: (socket: Socket | TLSSocket) => void) {
    this.#connect = connect
    this.#giveBack = giveBack
  }

  /** A session that takes requests; `undefined` when the origin speaks HTTP/1.1. */
  async get (): Promise<ClientHttp2Session | undefined> {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) return this.#session
    if (performance.now() < this.#http1UntilMs) return undefined
    this.#opening ??= this.#open()
    return await this.#opening
  }

  close (): void {
    this.#session?.destroy()
  }

  async #open (): Promise<ClientHttp2Session | undefined> {
    try {
      const socket = await this.#connect()
      if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== 'h2') {
        this.#http1UntilMs = performance.now() + REMEMBER_MS
        this.#giveBack(socket)
        return undefined
      }
      this.#session = start(socket)
      const opening = openings.get(socket)
      if (opening !== undefined) openings.set(this.#session, opening)
      return this.#session
    } finally {
      this.#opening = undefined
    }
  }
}

function start (socket: TLSSocket): ClientHttp2Session {
  // Guests ask for no pushes.
  const session = connect('https://origin.invalid', { createConnection: () => socket, settings: { enablePush: false, initialWindowSize: WINDOW_BYTES } })
  // The session may have ended before.
  session.once('connect', () => { if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW_BYTES) })
  // Streams get the error themselves; without a listener it would end the program.
  session.on('error', () => session.destroy())
  session.on('goaway', (code: number, last: number) => {
    farewells.set(session, { code, last })
    session.close()
  })
  endWhenGivenUp(session)
  return session
}
