// The shapes of the image routes.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Tags, Timestamp } from '../../core/http/schemas.ts'
import { CredentialsBody } from '../../core/library/oci/credentials.ts'
import type { ImageStatus } from './contract.ts'
import { ImageDetails } from './layers/view.ts'
import type { ImageRecord } from './record.ts'

const closed = { additionalProperties: false } as const
const Strings = Type.Array(Type.String())

const IMAGE_STATUSES = ['pending', 'pulling', 'converting', 'ready', 'failed'] as const satisfies readonly ImageStatus[]

export const ImageBody = Type.Object({
  name: Type.String({ description: 'Normalised reference, by tag or digest', examples: ['docker.io/library/nginx:latest'] }),
  digest: Type.String({ description: 'Digest of the manifest for this host; empty until it is known' }),
  status: oneOf(IMAGE_STATUSES),
  created_at: Timestamp,
  platform: Type.Optional(Type.String({ description: 'os/arch' })),
  queue_position: nullable(Type.Integer({ description: '1 for the next to be pulled; null when it does not wait' })),
  error: nullable(Type.String({ description: 'Why it failed' })),
  size_bytes: nullable(Type.Integer({ description: 'Size of the root file system; null until ready' })),
  cmd: nullable(Strings),
  entrypoint: nullable(Strings),
  env: Type.Record(Type.String(), Type.String()),
  working_dir: nullable(Type.String()),
  tags: Tags
}, { $id: 'Image', ...closed })

export type ImageBody = Static<typeof ImageBody>

export const ImageWithDetails = Type.Object({
  ...ImageBody.properties,
  details: Type.Optional(nullable(ImageDetails))
}, { $id: 'ImageWithDetails', ...closed })

export const ImageQuery = Type.Object({
  details: Type.Optional(Type.Boolean({ description: 'Adds `details`: the layers, what they share with other images, and what uses the image. null there until the digest is known' }))
}, closed)

export const ImageList = Type.Array(ImageBody)

export const ImageListQuery = Type.Object({
  ...listQuery(['name', 'created_at'], 'name'),
  ...TagsQuery,
  ...NameQuery,
  status: Type.Optional(oneOf(IMAGE_STATUSES, { description: 'Only images with this status' }))
}, closed)
export type ImageListQuery = Static<typeof ImageListQuery>

export const ImagePath = Type.Object({ '*': Type.String({ minLength: 1, maxLength: 1300, description: 'Image reference; its slashes are best sent escaped, as %2F' }) }, closed)

export const ImageCreate = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 1000, description: 'OCI image reference, for example docker.io/library/nginx:latest', examples: ['docker.io/library/nginx:latest'] }),
  platform: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'os/arch[/variant]; only that of this host' })),
  tags: Type.Optional(Tags),
  credentials: Type.Optional(CredentialsBody)
}, closed)

export const ImageTag = Type.Object({
  target: Type.String({ minLength: 1, maxLength: 1000, description: 'The new name, with a tag' })
}, closed)

/** An image as JSON. */
export function imageBody (image: ImageRecord): ImageBody {
  return {
    name: image.name,
    digest: image.digest,
    status: image.status,
    created_at: image.createdAt.toISOString(),
    platform: image.platform,
    queue_position: image.queuePosition ?? null,
    error: image.error ?? null,
    size_bytes: image.sizeBytes ?? null,
    cmd: image.cmd === undefined ? null : [...image.cmd],
    entrypoint: image.entrypoint === undefined ? null : [...image.entrypoint],
    env: { ...image.env },
    working_dir: image.workingDir ?? null,
    tags: { ...image.tags }
  }
}
