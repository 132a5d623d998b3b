// The one door to origins over HTTP/1.1. What stands behind it can be changed without a word to anything else.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Origin } from './origin.ts'

/** What happens to a request on its way; each is called at most once, and nothing after `failed`. */
export interface UpstreamListener {
  /** A connection is there and nothing has been written: whoever is called writes the header and the body. */
  ready (request: ClientRequest): void
  answered (response: IncomingMessage): void
  failed (error: unknown): void
}

export interface UpstreamCall extends UpstreamListener {
  readonly origin: Pick<Origin, 'agent' | 'target'>
  readonly method: string
  /** as the guest wrote it, byte for byte */
  readonly path: string
}

export interface UpgradeListener {
  /** Whether the guest still wants it, now that a connection is there. */
  wanted (): boolean
  /** Nothing has been written: whoever is called sets the header. */
  prepare (request: ClientRequest): void
  /** The origin changes protocols; what is in `headers` then goes to the guest. */
  upgraded (response: IncomingMessage, socket: Duplex): void
  /** The origin answers with something else. */
  answered (response: IncomingMessage): void
  failed (error: unknown): void
}

export interface UpgradeCall extends UpgradeListener {
  readonly origin: Origin
  readonly path: string
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** what came after the header in the same packet */
  readonly head: Buffer
}

export interface Upstream {
  request (call: UpstreamCall): void
  upgrade (call: UpgradeCall): void
}
