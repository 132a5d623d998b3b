// What answers that are Server-Sent Events have in common.
import { Readable } from 'node:stream'

export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  // Proxies that buffer would delay events.
  'x-accel-buffering': 'no'
} as const

/**
 * A comment line: it makes the headers go out before there is an event, and keeps a silent connection alive. No empty line follows it, since
 * the decoder of the Go SDK takes each one for the end of an event, and fails on an event without data.
 */
export function sseComment (text: string): string {
  return `: ${text}\n`
}

const BUFFERED_BYTES = 256 * 1024

/** The text of events as an answer, produced no faster than the client reads it. */
export function eventStream (events: AsyncIterable<string>): Readable {
  return Readable.from(events, { objectMode: false, highWaterMark: BUFFERED_BYTES })
}
