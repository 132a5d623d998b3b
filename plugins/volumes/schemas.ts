// The shapes of requests and answers about volumes.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../core/http/list.ts'
import { Tags, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

const VolumeId = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$',
  rule: 'must have 1 to 63 letters, digits, dots, dashes or underscores, and begin and end with a letter or digit'
})

/** The names that volume tools allow, of at most 63 characters. */
const VolumeName = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]*$',
  rule: 'must have 1 to 63 letters, digits, dots, dashes or underscores, and begin with a letter or digit',
  description: 'Unique among the volumes of the host, whatever its case'
})

const MIB_IN_GB = 1 / 1024
const SizeGb = (description: string) => Type.Number({ minimum: 64 * MIB_IN_GB, multipleOf: MIB_IN_GB, rule: 'must be 0.0625 (64 MiB) or more, and come out as whole MiB, as 1.5 or 2.25 do', description })

export const CreateVolume = Type.Object({
  name: VolumeName,
  size_gb: SizeGb('Size in GB, of 2^30 bytes; it takes only the space that is written'),
  id: Type.Optional(VolumeId),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateVolume' })
export type CreateVolume = Static<typeof CreateVolume>

export const FromArchiveQuery = Type.Object({
  name: VolumeName,
  size_gb: SizeGb('Most that the content may take, in GB; the volume is as large as its content needs'),
  id: Type.Optional(VolumeId),
  tags: Type.Optional(Tags)
}, closed)

export const VolumeView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  size_gb: Type.Number(),
  created_at: Timestamp,
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  attachments: Type.Array(Type.Object({
    instance_id: Type.String(),
    mount_path: Type.String(),
    readonly: Type.Boolean()
  }, closed))
}, { ...closed, $id: 'Volume' })
export type VolumeView = Static<typeof VolumeView>

export const VolumeList = Type.Array(VolumeView)

export const ListVolumesQuery = Type.Object({
  ...listQuery(['created_at', 'name', 'size_gb'], 'created_at'),
  ...TagsQuery,
  ...NameQuery
}, closed)
export type ListVolumesQuery = Static<typeof ListVolumesQuery>

/** `:id` is an id, a name that only one volume has, or the beginning of an id. */
export const VolumeRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
