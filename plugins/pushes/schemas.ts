// The shapes of requests and answers about pushes.
import { Type, type Static } from 'typebox'
import { listQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Timestamp } from '../../core/http/schemas.ts'
import { CredentialsBody } from '../../core/library/oci/credentials.ts'
import type { PushStatus } from './record.ts'

const closed = { additionalProperties: false } as const

export const PushCreate = Type.Object({
  image: Type.String({ minLength: 1, maxLength: 1000, description: 'An image that is ready here, by tag or digest' }),
  target: Type.String({ minLength: 1, maxLength: 1000, description: 'Where to: host/repository:tag; without a tag, latest' }),
  insecure: Type.Optional(Type.Boolean({ default: false, description: 'Allow plain HTTP and an unknown certificate at the target' })),
  credentials: Type.Optional(CredentialsBody)
}, { ...closed, $id: 'CreatePush' })
export type PushCreate = Static<typeof PushCreate>

const PUSH_STATUSES = ['queued', 'pushing', 'pushed', 'failed'] as const satisfies readonly PushStatus[]

export const PushView = Type.Object({
  id: Type.String(),
  image: Type.String({ description: 'Normalised reference' }),
  target: Type.String({ description: 'Normalised reference' }),
  digest: Type.String({ description: 'Of the manifest that is pushed' }),
  status: oneOf(PUSH_STATUSES),
  queue_position: nullable(Type.Integer({ description: '1 for the next; null when it does not wait' })),
  layers: Type.Optional(Type.Integer({ description: 'Layers of the image; absent until its manifest has been read' })),
  bytes: Type.Optional(Type.Integer({ description: 'Compressed size of its layers, wherever they were already; absent until its manifest has been read' })),
  error: nullable(Type.String({ description: 'Why it failed' })),
  created_at: Timestamp,
  completed_at: nullable(Timestamp)
}, { ...closed, $id: 'Push' })
export type PushView = Static<typeof PushView>

export const PushList = Type.Array(PushView)

export const PushListQuery = Type.Object({
  ...listQuery(['created_at', 'status'], '-created_at'),
  status: Type.Optional(oneOf(PUSH_STATUSES, { description: 'Only pushes with this status' }))
}, closed)
export type PushListQuery = Static<typeof PushListQuery>

export const PushPath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }, closed)
