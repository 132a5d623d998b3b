// The answer of GET /events. It is read from the journal as fast as the client reads it: nothing is buffered for a slow client.
import { sseComment } from '../../../core/http/sse.ts'
import { bodyOf } from '../journal/event.ts'
import type { EventJournal } from '../journal/journal.ts'
import type { Wants } from './filter.ts'
import { LatestProgress } from './progress.ts'

export interface StreamOptions {
  readonly journal: EventJournal
  /** the id after which it begins */
  readonly from: number
  readonly maxRows: number
  readonly maxAgeMs: number
  readonly heartbeatMs: number
  /** the events that the caller wants and may read right now; `undefined` once the key has ended */
  readonly wants: () => Promise<Wants | undefined>
  readonly signal: AbortSignal
}

/** How much of a page is written to the connection at once. */
const CHUNK_CHARACTERS = 16_384

export async function * eventsOf (options: StreamOptions): AsyncGenerator<string, void, void> {
  const { journal, signal, heartbeatMs } = options
  const progress = new LatestProgress()
  const unsubscribe = journal.onProgress((event) => {
    progress.add(event)
    journal.wake()
  })
  try {
    // Sends the headers at once.
    yield sseComment('events') + await opening(options)
    let place = { at: options.from, told: options.from }
    let wants = await options.wants()
    let checkedAt = performance.now()
    while (wants !== undefined && !signal.aborted) {
      const head = journal.head()
      const events = await journal.after(place.at)
      if (events === undefined) {
        yield sse(undefined, { type: 'expired', ...await windowOf(options) })
        return
      }
      const wanted = wants
      for (const text of chunks(events.filter((event) => wanted(event)).map((event) => `id: ${event.id}\ndata: ${bodyOf(event)}\n\n`))) yield text
      const last = events.at(-1)?.id ?? place.at
      place = { at: last, told: events.findLast((event) => wanted(event))?.id ?? place.told }
      for (const event of progress.take()) if (wanted(event)) yield `data: ${bodyOf(event)}\n\n`
      const isDue = performance.now() - checkedAt >= heartbeatMs
      if (isDue) {
        wants = await options.wants()
        checkedAt = performance.now()
        // Otherwise the position of a client with rare events could fall out of the journal.
        yield place.at === place.told ? sseComment('waiting') : sse(place.at, { type: 'bookmark', id: String(place.at) })
        place = { at: place.at, told: place.at }
      }
      if (events.length === 0 && progress.isEmpty()) await journal.wait(head, heartbeatMs, signal)
    }
  } finally {
    unsubscribe()
  }
}

async function opening (options: StreamOptions): Promise<string> {
  return sse(options.from, { type: 'ready', id: String(options.from), ...await windowOf(options) })
}

async function windowOf ({ journal, maxRows, maxAgeMs }: StreamOptions): Promise<Record<string, unknown>> {
  const { oldest, newest } = await journal.window()
  return { window: { oldest_id: String(oldest), newest_id: String(newest), max_events: maxRows, max_age_seconds: maxAgeMs / 1000 } }
}

function sse (id: number | undefined, body: Record<string, unknown>): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(body)}\n\n`
}

function * chunks (texts: readonly string[]): Generator<string, void, void> {
  let chunk = ''
  for (const text of texts) {
    chunk += text
    if (chunk.length < CHUNK_CHARACTERS) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}
