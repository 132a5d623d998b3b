// What answers that are Server-Sent Events have in common.
import { Readable } from 'node:stream'
import { Stopping } from './errors.ts'

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

/**
 * The text of events as an answer, produced no faster than the client reads it.
 * @param over aborts when the client has left or, for what is followed, when the server stops. The answer breaks off then: an end would tell the client that nothing more will come
 */
export function eventStream (events: AsyncIterable<string>, over: AbortSignal): Readable {
  const stream = Readable.from(events, { objectMode: false, highWaterMark: BUFFERED_BYTES })
  const breakOff = (): void => { stream.destroy(Stopping()) }
  over.addEventListener('abort', breakOff)
  stream.once('close', () => { over.removeEventListener('abort', breakOff) })
  // Fastify listens for errors only once it sends.
  stream.on('error', () => {})
  if (over.aborted) breakOff()
  return stream
}
