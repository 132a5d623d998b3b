// The HTTP/2 session to an origin, and whether the origin speaks HTTP/2 at all.
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { passOpening } from '../audit/exchange-trace.ts'
import { OriginSession } from './http2-session.ts'

// How long an origin that chose HTTP/1.1 is not offered HTTP/2 again.
const REMEMBER_MS = 10 * 60 * 1000

/** A request that needs to know how its origin is spoken to. */
export interface SessionCall {
  /** A session that takes requests; `undefined`: the origin speaks HTTP/1.1. Never throws. */
  opened (session: OriginSession | undefined): void
  /** Never throws. */
  failed (error: unknown): void
}

export interface Http2SessionsOptions {
  /** Offers both protocols. */
  readonly connect: (signal: AbortSignal) => Promise<Socket | TLSSocket>
  /** Takes a connection on which the origin chose HTTP/1.1. */
  readonly giveBack: (socket: Socket | TLSSocket) => void
  readonly letGo: (socket: Socket) => void
}

/** A connection that is being made, and who waits for it. */
interface Opening {
  readonly calls: Set<SessionCall>
  readonly controller: AbortController
}

export class Http2Sessions {
  readonly #options: Http2SessionsOptions
  #session: OriginSession | undefined
  #opening: Opening | undefined
  #http1UntilMs = 0

  constructor (options: Http2SessionsOptions) {
    this.#options = options
  }

  /** Gives the call a session, in this turn when there is one. */
  request (call: SessionCall): void {
    if (this.#session?.usable === true) return call.opened(this.#session)
    if (performance.now() < this.#http1UntilMs) return call.opened(undefined)
    if (this.#opening === undefined) {
      this.#opening = { calls: new Set(), controller: new AbortController() }
      void this.#open(this.#opening)
    }
    this.#opening.calls.add(call)
  }

  /** The request is not wanted any more; it is told nothing. A connection that nobody waits for is not made. */
  withdraw (call: SessionCall): void {
    const opening = this.#opening
    if (opening?.calls.delete(call) !== true || opening.calls.size > 0) return
    this.#opening = undefined
    opening.controller.abort()
  }

  close (): void {
    this.#opening?.controller.abort()
    this.#session?.destroy()
  }

  async #open (opening: Opening): Promise<void> {
    let session: OriginSession | undefined
    try {
      session = this.#begin(await this.#options.connect(opening.controller.signal))
    } catch (error) {
      this.#opened(opening, call => call.failed(error))
      return
    }
    this.#opened(opening, call => call.opened(session))
  }

  #begin (socket: Socket | TLSSocket): OriginSession | undefined {
    if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== 'h2') {
      this.#http1UntilMs = performance.now() + REMEMBER_MS
      this.#options.giveBack(socket)
      return undefined
    }
    const session = new OriginSession(socket, () => this.#options.letGo(socket))
    this.#session = session
    passOpening(socket, session)
    return session
  }

  #opened (opening: Opening, tell: (call: SessionCall) => void): void {
    if (this.#opening === opening) this.#opening = undefined
    for (const call of opening.calls) {
      opening.calls.delete(call)
      tell(call)
    }
  }
}
