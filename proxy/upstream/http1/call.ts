// The interface between a request over HTTP/1.1 and the connection that carries it.
import type { AnswerHead } from './answer-head.ts'

export interface OutgoingHead {
  readonly method: string
  /** as the guest wrote it, byte for byte */
  readonly path: string
  /** names and values in turn, without Transfer-Encoding, which the connection writes itself */
  readonly lines: readonly string[]
  /** bytes of the body; `tunnel`: the protocol is to change, and bytes are written unchanged */
  readonly body: number | 'chunked' | 'tunnel'
}

/** The connection, as seen by the request that it carries. */
export interface RequestCarrier {
  /** Whether the failed request can be sent again: the connection had served before, and the origin may have closed it at the moment of its next use. */
  readonly diedUnused: boolean
  /** Bytes that were written and have not left yet. */
  readonly writableLength: number
  readonly writableNeedDrain: boolean
  /** Sends a piece of the body. More bytes than the announced length could be read as another request: they end the connection. */
  write (chunk: Buffer, done?: (error?: Error | null) => void): void
  /** The body is complete. Trailers, names and values in turn, go with a chunked one. */
  end (trailers: readonly string[]): void
  /** Also emitted when the connection closes: otherwise a waiting sender would wait for ever. */
  once (event: 'drain', listener: () => void): void
  pause (): void
  resume (): void
  isPaused (): boolean
  /** Ends the connection: HTTP/1.1 has no other way to cancel a request. Does nothing when the connection no longer carries this one. */
  cancel (call: OriginCall): void
  /** The guest is gone: bytes that were written are still sent, and nothing else is done. */
  leave (call: OriginCall): void
}

/** Tells a request that it failed. Never throws. */
export function fail (call: OriginCall, error: unknown): void {
  try {
    call.failed(error)
  } catch (second) {
    call.fault(second)
  }
}

/** The events of a request, in this order; none comes after `ended` or `failed`, and none after a cancellation. */
export interface OriginCall {
  /** The header, which must be written in this turn of the event loop, so that it has no value of a replaced policy. `undefined`: the request is no longer wanted. */
  head (): OutgoingHead | undefined
  /** The header was written to this connection. The callee writes the body and ends it, unless its length is 0. */
  sending (connection: RequestCarrier): void
  answered (head: AnswerHead): void
  /** Of the answer only the header has come so far. */
  waiting (): void
  /** A piece of the answer's body: a view of memory that is overwritten after the call. */
  body (view: Buffer): void
  ended (trailers: readonly string[]): void
  failed (error: unknown): void
  /** One of these methods threw an exception: a bug of this program. */
  fault (error: unknown): void
}
