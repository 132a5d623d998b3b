// The shapes of requests and answers about volumes.
import { Type, type Static } from 'typebox'
import { ListQuery, TagsQuery } from '../../core/http/list.ts'
import { ResourceName, Tags, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

const VolumeId = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$',
  rule: 'must have 1 to 63 letters, digits, dots, dashes or underscores, and begin and end with a letter or digit'
})

const SizeGb = (description: string) => Type.Integer({ minimum: 1, description })

export const CreateVolume = Type.Object({
  name: ResourceName,
  size_gb: SizeGb('Size in GB, of 2^30 bytes; it takes only the space that is written'),
  id: Type.Optional(VolumeId),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateVolume' })
export type CreateVolume = Static<typeof CreateVolume>

export const FromArchiveQuery = Type.Object({
  name: ResourceName,
  size_gb: SizeGb('Most that the content may take, in GB; the volume is as large as its content needs'),
  id: Type.Optional(VolumeId),
  tags: Type.Optional(Tags)
}, closed)

export const VolumeView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  size_gb: Type.Integer(),
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

export const ListVolumesQuery = Type.Object({ ...ListQuery, ...TagsQuery }, closed)

/** `:id` is an id or a name that only one volume has. */
export const VolumeRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
