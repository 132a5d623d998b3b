// The errors of the plugin events.
import { defineError, BerthError } from '../../core/errors/define.ts'

const EXPIRED = { code: 'events_expired', kind: 'gone' } as const

/** A position that the journal can no longer continue from: as with `410 Gone` of Kubernetes, the client must read everything again. */
export const EventsExpired = Object.assign((after: string, oldest: number, newest: number): BerthError =>
  new BerthError(EXPIRED.code, EXPIRED.kind, `events after ${after} are not known any more: read GET /events/snapshot, and go on from the id that it names`, {
    details: [
      { code: 'oldest_id', message: String(oldest) },
      { code: 'newest_id', message: String(newest) }
    ]
  }), EXPIRED)

/** The same for one key, or for all streams. */
export const TooManyStreams = defineError('too_many_streams', 'rate-limited', (whose: string, most: number) =>
  `${whose} has ${most} streams of events open, and may have no more (plugins.events.config.maxStreams, of which one key may have a quarter)`)

export const UnknownResource = defineError('invalid_request', 'invalid', (resource: string, known: readonly string[]) => `resource: ${resource} has no events; there are ${known.join(', ')}`)
