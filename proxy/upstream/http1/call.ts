// What a request over HTTP/1.1 is to the connection that carries it.
import type { AnswerHead } from './answer-head.ts'
import type { OriginConnection } from './connection.ts'

export interface OutgoingHead {
  readonly method: string
  /** as the guest wrote it, byte for byte */
  readonly path: string
  /** names and values in turn, without Transfer-Encoding, which the connection writes itself */
  readonly lines: readonly string[]
  /** bytes of the body; `tunnel`: the protocol is to change, and what is written goes as it is */
  readonly body: number | 'chunked' | 'tunnel'
}

/** Tells a request that it failed. It never throws. */
export function fail (call: OriginCall, error: unknown): void {
  try {
    call.failed(error)
  } catch (second) {
    call.fault(second)
  }
}

/** What happens to a request on its way, in this order; nothing comes after `ended` or `failed`, and nothing after a cancellation. */
export interface OriginCall {
  /** The header, to be written in this turn of the event loop: no policy that was replaced before can be in it. `undefined`: it is not wanted any more. */
  head (): OutgoingHead | undefined
  /** The header is written to this connection. Whoever is called writes the body and ends it, unless its length is 0. */
  sending (connection: OriginConnection): void
  answered (head: AnswerHead): void
  /** All that came so far is a header. */
  waiting (): void
  /** A piece of the answer's body: a view of memory that is written over when this has returned. */
  body (view: Buffer): void
  ended (trailers: readonly string[]): void
  failed (error: unknown): void
  /** An exception of this program came out of one of the above. */
  fault (error: unknown): void
}
