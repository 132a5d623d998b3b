// What answers that are Server-Sent Events have in common.
import { Readable } from 'node:stream'

export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  // Proxies that buffer would hold events back.
  'x-accel-buffering': 'no'
} as const

const BUFFERED_BYTES = 256 * 1024

/** The text of events as an answer, made no faster than the client reads it. */
export function eventStream (events: AsyncIterable<string>): Readable {
  return Readable.from(events, { objectMode: false, highWaterMark: BUFFERED_BYTES })
}
