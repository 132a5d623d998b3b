// The answer of GET logs: each line as a Server-Sent Event whose data is a JSON string.
import type { Readable } from 'node:stream'
import { eventStream, sseComment } from '../../../core/http/sse.ts'
import { follow, type FollowOptions } from './follow.ts'
import { LineSplitter } from './lines.ts'

const HEARTBEAT = sseComment('ping')

/** The events of a log, pulled no faster than the client reads. */
export function sseStream (options: FollowOptions, trimCarriageReturn: boolean): Readable {
  return eventStream(events(options, trimCarriageReturn), options.signal)
}

async function * events (options: FollowOptions, trimCarriageReturn: boolean): AsyncGenerator<string, void, void> {
  // Sends the headers at once, even when there is no line yet.
  yield sseComment('log')
  const splitter = new LineSplitter({ trimCarriageReturn })
  for await (const block of follow(options)) {
    const text = block.length === 0 ? HEARTBEAT : asEvents(splitter.push(block))
    if (text !== '') yield text
  }
  // What a follower has of a line when it is interrupted is no line.
  const last = options.signal.aborted ? '' : asEvents(splitter.flush())
  if (last !== '') yield last
}

function asEvents (lines: readonly string[]): string {
  return lines.map((line) => `data: ${JSON.stringify(line)}\n\n`).join('')
}
