// What GET /images/{name}?details=true says beyond the image: its layers, what they share with other images, and who uses it.
import { Type, type Static } from 'typebox'
import { nullable } from '../../../core/http/schemas.ts'
import type { KnownLayer } from './repository.ts'

const closed = { additionalProperties: false } as const
/** holders that are named; of the others only the number is told */
export const MOST_USERS = 1000

export const ImageDetails = Type.Object({
  layers: nullable(Type.Array(Type.Object({
    digest: Type.String(),
    media_type: nullable(Type.String()),
    size_bytes: Type.Integer({ description: 'Compressed, as it is transferred' }),
    created_by: nullable(Type.String({ description: 'The command that made it, as the image says, cut to 500 characters' })),
    shared_by: Type.Integer({ description: 'How many other images of this host have the same layer' })
  }, closed), { description: 'The lowest first, 256 at most; null: not known, since the image was pulled by an earlier version. It is known again once its name is pulled again' })),
  layer_count: nullable(Type.Integer()),
  compressed_bytes: Type.Integer({ description: 'Size of all layers together, as the manifest says' }),
  shared_compressed_bytes: nullable(Type.Integer({ description: 'Of these, the layers listed that another image of this host has, each once: a registry keeps them once. On this host each image is unpacked to one disk, of which no other image has a part' })),
  own_compressed_bytes: nullable(Type.Integer({ description: 'The layers listed that no other image of this host has, each once' })),
  disk_bytes: nullable(Type.Integer({ description: 'The root file system on the disk of this host: one for all names of this digest and all that use it, who only read it; null until ready' })),
  names: Type.Array(Type.String(), { description: 'All names of this digest, 1000 at most' }),
  used_by: Type.Object({
    total: Type.Integer(),
    holders: Type.Array(Type.Object({ kind: Type.String({ description: 'instance or snapshot' }), id: Type.String() }, closed), { description: '1000 at most' })
  }, { ...closed, description: 'What keeps the image on the disk though its names are deleted' })
}, { $id: 'ImageDetails', ...closed })
export type ImageDetails = Static<typeof ImageDetails>

export interface DetailFacts {
  /** absent: not known */
  readonly layerCount: number | undefined
  readonly layers: readonly KnownLayer[]
  readonly compressedBytes: number
  readonly diskBytes: number | undefined
  readonly names: readonly string[]
  readonly holders: { readonly total: number, readonly some: readonly string[] }
}

export function detailsBody ({ layerCount, layers, compressedBytes, diskBytes, names, holders }: DetailFacts): ImageDetails {
  const isKnown = layerCount !== undefined
  return {
    layers: isKnown ? layers.map((layer) => ({ digest: layer.digest, media_type: layer.mediaType ?? null, size_bytes: layer.sizeBytes, created_by: layer.createdBy ?? null, shared_by: layer.sharedBy })) : null,
    layer_count: layerCount ?? null,
    compressed_bytes: compressedBytes,
    shared_compressed_bytes: isKnown ? sumOnce(layers.filter(({ sharedBy }) => sharedBy > 0)) : null,
    own_compressed_bytes: isKnown ? sumOnce(layers.filter(({ sharedBy }) => sharedBy === 0)) : null,
    disk_bytes: diskBytes ?? null,
    names: [...names],
    used_by: { total: holders.total, holders: holders.some.map(holderBody) }
  }
}

/** Layers that make no difference are often the same one several times. */
function sumOnce (layers: readonly KnownLayer[]): number {
  return [...new Map(layers.map(({ digest, sizeBytes }) => [digest, sizeBytes])).values()].reduce((sum, bytes) => sum + bytes, 0)
}

/** `instance:ID` */
function holderBody (holder: string): { readonly kind: string, readonly id: string } {
  const colon = holder.indexOf(':')
  return { kind: holder.slice(0, Math.max(colon, 0)), id: holder.slice(colon + 1) }
}
