// The shapes of requests and answers about builders.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../../core/http/list.ts'
import { nullable, oneOf, Tags, Timestamp } from '../../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

export const CreateBuilder = Type.Object({
  id: Type.Optional(Type.String({
    minLength: 1,
    maxLength: 63,
    pattern: '^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$',
    rule: 'must have 1 to 63 letters, digits, dots, dashes or underscores, and begin and end with a letter or digit'
  })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, pattern: '^[^\\x00-\\x1f\\x7f]*$', rule: 'must have 1 to 128 printable characters', description: 'For people; need not be unique' })),
  disk_size_gb: Type.Optional(Type.Integer({ minimum: 1, description: 'Size of the cache disk in GB, of 2^30 bytes; it takes only the space that is written' })),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateBuilder' })
export type CreateBuilder = Static<typeof CreateBuilder>

const BUILDER_STATUSES = ['ready', 'pruning', 'deleting', 'error'] as const

export const BuilderView = Type.Object({
  id: Type.String(),
  name: Type.Optional(Type.String()),
  disk_size_gb: Type.Integer(),
  max_concurrency: Type.Integer({ description: 'Builds of one builder run one after the other' }),
  status: oneOf(BUILDER_STATUSES),
  active_build_id: nullable(Type.String()),
  queued_builds: Type.Array(Type.String(), { description: 'Builds that wait for it, oldest first' }),
  last_used_at: nullable(Timestamp),
  created_at: Timestamp,
  tags: Type.Optional(Type.Record(Type.String(), Type.String()))
}, { ...closed, $id: 'Builder' })
export type BuilderView = Static<typeof BuilderView>

export const BuilderList = Type.Array(BuilderView)

export const ListBuildersQuery = Type.Object({
  ...listQuery(['created_at', 'name'], 'created_at'),
  ...TagsQuery,
  ...NameQuery,
  status: Type.Optional(oneOf(BUILDER_STATUSES, { description: 'Only builders with this status' }))
}, closed)
export type ListBuildersQuery = Static<typeof ListBuildersQuery>

export const BuilderPath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
