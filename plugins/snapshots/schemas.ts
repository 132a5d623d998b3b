// The shapes of requests and answers about snapshots and their schedules.
import { Type, type Static } from 'typebox'
import { HypervisorName } from '../../core/library/hypervisor-name.ts'
import { listQuery, NameQuery, TagsQuery } from '../../core/http/list.ts'
import { mapOf, namedSchema, nullable, oneOf, ResourceName, Tags, Timestamp } from '../../core/http/schemas.ts'
import type { CopyKind } from '../instances/contract.ts'
import { COMPRESSION_STATES } from './record.ts'

const closed = { additionalProperties: false } as const

const KINDS = ['Standby', 'Stopped'] as const satisfies readonly CopyKind[]

const Id = Type.String({ minLength: 1, maxLength: 191 })
const Bytes = Type.Integer({ minimum: 0 })

/** The plugin instances makes and describes this answer. */
export const Instance = namedSchema('Instance')

const Compression = Type.Object({
  enabled: Type.Boolean(),
  algorithm: Type.Optional(oneOf(['zstd', 'lz4'], { description: 'zstd when absent' })),
  level: Type.Optional(Type.Integer({ minimum: 0, maximum: 19, description: 'zstd 1 to 19, lz4 0 to 9' }))
}, closed)

export const CreateSnapshot = Type.Object({
  kind: oneOf(KINDS, { description: 'Standby: disk and memory of a Running or Standby instance; Stopped: the disk of a Stopped one' }),
  name: Type.Optional(ResourceName),
  compression: Type.Optional(Compression),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateSnapshot' })

export const SnapshotView = Type.Object({
  id: Type.String(),
  name: nullable(Type.String({ description: 'Unique among the snapshots of one instance' })),
  kind: oneOf(KINDS),
  source_instance_id: Type.String(),
  source_instance_name: Type.String({ description: 'When it was taken' }),
  source_hypervisor: Type.String(),
  created_at: Timestamp,
  size_bytes: Type.Integer({ minimum: 0, description: 'What it takes on disk' }),
  tags: Tags,
  compression: Type.Optional(Compression),
  compression_state: oneOf(COMPRESSION_STATES, { description: 'Of the memory' }),
  compression_error: nullable(Type.String()),
  compressed_size_bytes: nullable(Bytes),
  uncompressed_size_bytes: nullable(Bytes)
}, { ...closed, $id: 'Snapshot' })
export type SnapshotView = Static<typeof SnapshotView>

export const SnapshotList = Type.Array(SnapshotView)

export const ListSnapshotsQuery = Type.Object({
  ...listQuery(['created_at', 'name'], '-created_at'),
  ...TagsQuery,
  ...NameQuery,
  source_instance_id: Type.Optional(Type.String({ minLength: 1, maxLength: 191, description: 'Id, name, or the beginning of the id of the source, also of one that is gone; of an unknown one there are none' })),
  kind: Type.Optional(oneOf(KINDS))
}, closed)
export type ListSnapshotsQuery = Static<typeof ListSnapshotsQuery>

const target = {
  target_hypervisor: Type.Optional(HypervisorName({ description: 'Only for a snapshot of the kind Stopped' })),
  target_state: Type.Optional(oneOf(['Stopped', 'Standby', 'Running'], { description: 'Running for a Standby snapshot, Stopped for a Stopped one when absent' }))
}

export const ForkSnapshot = Type.Object({
  name: ResourceName,
  ...target,
  tags: Type.Optional(Type.Unsafe<Record<string, string>>({ ...Tags, description: 'In place of those that the source had' })),
  env: Type.Optional(mapOf(Type.String({ maxLength: 131_071, pattern: '^[^\\u0000]*$' }), { description: 'As of POST /instances/{id}/fork' }))
}, { ...closed, $id: 'ForkSnapshot' })

export const RestoreSnapshot = Type.Object(target, { ...closed, $id: 'RestoreSnapshot' })

export const SnapshotPath = Type.Object({ snapshotId: Id }, closed)

/** `:id` is an id, a name, or the beginning of an id that only one instance has. */
export const InstancePath = Type.Object({ id: Id }, closed)

export const InstanceSnapshotPath = Type.Object({ id: Id, snapshotId: Id }, closed)

/** As written in a request. schedules/validate.ts has the rules beyond the shape. */
const DurationText = (description: string) => Type.String({ minLength: 1, maxLength: 64, description })

const Retention = Type.Object({
  max_count: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'Keep the newest so many scheduled snapshots; 0: any number' })),
  max_age: Type.Optional(DurationText('Keep scheduled snapshots for so long; Go duration'))
}, closed)

export const SetSchedule = Type.Object({
  interval: DurationText('Go duration, at least 1m'),
  retention: Retention,
  name_prefix: Type.Optional(nullable(Type.String({
    minLength: 1,
    maxLength: 47,
    pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
    rule: 'must have 1 to 47 lower case letters, digits or dashes, and begin and end with a letter or digit',
    description: 'Names are this, a dash and the time; scheduled when absent'
  }))),
  // The plugin adds one tag.
  metadata: Type.Optional(Type.Unsafe<Record<string, string>>({ ...Tags, maxProperties: 49, description: 'Tags of the snapshots' }))
}, { ...closed, $id: 'SetSnapshotSchedule' })
export type SetSchedule = Static<typeof SetSchedule>

export const ScheduleView = Type.Object({
  instance_id: Type.String(),
  interval: Type.String(),
  retention: Retention,
  name_prefix: nullable(Type.String()),
  metadata: Tags,
  next_run_at: Timestamp,
  last_run_at: nullable(Timestamp),
  last_snapshot_id: nullable(Type.String({ description: 'Of the last run that made one' })),
  last_error: nullable(Type.String({ description: 'Why the last run made none' })),
  created_at: Timestamp,
  updated_at: Timestamp
}, { ...closed, $id: 'SnapshotSchedule' })
export type ScheduleView = Static<typeof ScheduleView>
