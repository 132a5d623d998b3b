// The shapes of requests and answers about events.
import { Type, type Static } from 'typebox'
import { nullable, Timestamp } from '../../core/http/schemas.ts'
import { EventFilter } from './stream/filter.ts'

const closed = { additionalProperties: false } as const

export const EventsQuery = Type.Object({
  ...EventFilter,
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 32, description: 'The id of the last event that is known already, for clients that cannot send the header `Last-Event-ID`, which wins' }))
}, closed)

export const SnapshotQuery = Type.Object({ ...EventFilter }, closed)

export const Snapshot = Type.Object({
  id: Type.String({ description: 'Where the stream goes on: `GET /events` with it as `Last-Event-ID`. What changed meanwhile may be in both' }),
  timestamp: Timestamp,
  resources: Type.Array(Type.Object({
    resource: Type.String({ description: 'What it is, as in `volume.created`' }),
    id: Type.String(),
    name: nullable(Type.String()),
    status: Type.String(),
    tags: Type.Record(Type.String(), Type.String())
  }, { additionalProperties: true, description: 'The same as `data` of an event' }))
}, { $id: 'EventsSnapshot', ...closed })
export type Snapshot = Static<typeof Snapshot>
