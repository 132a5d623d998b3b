// A client of the stream of events.
import { decodeStream } from '../../helpers/line-decoder.ts'

export interface Seen {
  readonly type: string
  readonly id?: string
  readonly timestamp?: string
  readonly window?: Record<string, unknown>
  readonly data?: { readonly resource: string, readonly id: string, readonly status: string, readonly [field: string]: unknown }
}

/** Reads until `isLast` says so, or the server ends it; each event is given to `isLast` once. Resolves to the last id. */
export async function readEvents (url: string, key: string, after: string | undefined, isLast: (event: Seen) => boolean | Promise<boolean>): Promise<string | undefined> {
  const gone = new AbortController()
  const answer = await fetch(url, { signal: gone.signal, headers: { authorization: `Bearer ${key}`, ...after === undefined ? {} : { 'last-event-id': after } } })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  let last = after
  for await (const { id, data } of decodeStream(answer.body)) {
    const event: Seen = JSON.parse(JSON.stringify(data))
    last = id ?? last
    if (await isLast(event)) break
  }
  // To leave the body alone keeps the connection open.
  gone.abort()
  return last
}

/** The next events until one of this thing. */
export async function eventsUntil (url: string, key: string, after: string | undefined, isLast: (event: Seen) => boolean): Promise<Seen[]> {
  const seen: Seen[] = []
  await readEvents(url, key, after, (event) => {
    seen.push(event)
    return isLast(event)
  })
  return seen
}
