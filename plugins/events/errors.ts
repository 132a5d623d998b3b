// The errors of the plugin events.
import { defineError, BerthError } from '../../core/errors/define.ts'

const EXPIRED = 'events_expired'

/** An id that the journal cannot go on from: as with `410 Gone` of Kubernetes, the client reads everything anew. */
export function EventsExpired (after: string, oldest: number, newest: number): BerthError {
  return new BerthError(EXPIRED, 'gone', `events after ${after} are not known any more: read GET /events/snapshot, and go on from the id that it names`, {
    details: [
      { code: 'oldest_id', message: String(oldest) },
      { code: 'newest_id', message: String(newest) }
    ]
  })
}

export const TooManyStreams = defineError('too_many_streams', 'rate-limited', (most: number) => `${most} streams of events are open, and no more are allowed (plugins.events.config.maxStreams)`)

export const UnknownResource = defineError('invalid_request', 'invalid', (resource: string, known: readonly string[]) => `resource: ${resource} has no events; there are ${known.join(', ')}`)
