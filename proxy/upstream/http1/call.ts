// What a request over HTTP/1.1 is to the connection that carries it.
import type { AnswerHead } from './answer-head.ts'

export interface OutgoingHead {
  readonly method: string
  /** as the guest wrote it, byte for byte */
  readonly path: string
  /** names and values in turn, without Transfer-Encoding, which the connection writes itself */
  readonly lines: readonly string[]
  /** bytes of the body; `tunnel`: the protocol is to change, and what is written goes as it is */
  readonly body: number | 'chunked' | 'tunnel'
}

/** The connection as the request sees it that it carries. */
export interface RequestCarrier {
  /** Whether the request that failed can be sent again: the connection had served before, and the origin may have closed it in the moment of its next use. */
  readonly diedUnused: boolean
  /** Bytes that were written and did not leave yet. */
  readonly writableLength: number
  readonly writableNeedDrain: boolean
  /** Sends a piece of the body. A body of announced length that becomes longer could be read as another request: it ends the connection. */
  write (chunk: Buffer, done?: (error?: Error | null) => void): void
  /** The body is whole. Trailers, names and values in turn, go with a chunked one. */
  end (trailers: readonly string[]): void
  /** Also when it closes: whoever waits would wait for ever. */
  once (event: 'drain', listener: () => void): void
  pause (): void
  resume (): void
  isPaused (): boolean
  /** HTTP/1.1 has no other way to take a request back than to end its connection. Nothing happens when it does not carry this one any more. */
  cancel (call: OriginCall): void
  /** Who asked is gone: what was written still goes, and nothing else matters. */
  leave (call: OriginCall): void
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
  sending (connection: RequestCarrier): void
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
