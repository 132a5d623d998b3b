// Asks a registry what a reference means for this host: the digest of one manifest, and the size of its layers.
import { Type } from 'typebox'
import { shape } from '../../core/json/shape.ts'
import { digestOf } from '../../core/library/oci/digest.ts'
import type { ImageReference } from '../../core/library/oci/reference.ts'
import { sumOfSizes } from '../../core/library/oci/sizes.ts'
import type { ImageSources, RegistryAccess } from './contract.ts'
import { PlatformNotAvailable } from './errors.ts'
import { PullFailure } from './failures.ts'
import { fetchManifest } from './fetch-manifest.ts'
import { layersOf, type Layers } from './layers/layers.ts'
import { choosePlatform, formatPlatform, type Platform } from './platform.ts'

export interface Resolved {
  /** digest of the manifest for this host */
  readonly digest: string
  /** compressed size of all layers, `bytes` */
  readonly layerBytes: number
  /** whether layers must be recompressed, since umoci cannot read zstd */
  readonly recompress: boolean
  /** absent: the registry was not asked */
  readonly layers?: Layers
}

const Descriptor = Type.Object({ digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }), size: Type.Optional(Type.Number()), mediaType: Type.Optional(Type.String()) })
const isIndex = shape(Type.Object({
  manifests: Type.Array(Type.Intersect([Descriptor, Type.Object({
    platform: Type.Optional(Type.Object({ os: Type.String(), architecture: Type.String(), variant: Type.Optional(Type.String()) }))
  })]))
}))
const isManifest = shape(Type.Object({ config: Descriptor, layers: Type.Array(Descriptor) }))
const isSchema1 = shape(Type.Object({ schemaVersion: Type.Literal(1) }))

const IMAGE_CONFIGS = new Set(['application/vnd.oci.image.config.v1+json', 'application/vnd.docker.container.image.v1+json'])
// An OCI manifest may contain another artifact despite the config type of an image; the media types of its layers show it.
const LAYER = /\.(?:tar|diff\.tar|rootfs|layer)|\+gzip$|\+zstd$/
/** longest text of a registry that goes into a message, which is stored and listed */
const LONGEST_SHOWN = 200

export interface ResolveOptions {
  readonly skopeo: ImageSources['skopeo']
  readonly upstream: RegistryAccess
  readonly reference: Pick<ImageReference, 'name' | 'tag' | 'digest'>
  readonly host: Platform
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** @throws PullFailure, PlatformNotAvailable, or what the host command reported */
export async function resolveReference (options: ResolveOptions): Promise<Resolved> {
  const { reference } = options
  const raw = await fetched(options, reference.digest ?? reference.tag ?? 'latest')
  const parsed = parse(raw, reference.name)
  if (!isIndex(parsed)) return describe(raw, parsed, reference.name)
  const chosen = choosePlatform(parsed.manifests, options.host)
  if (chosen === undefined) {
    const has = parsed.manifests.flatMap((entry) => entry.platform === undefined || entry.platform.os === 'unknown' ? [] : [formatPlatform(entry.platform)])
    // Build caches and other collections of blobs are indexes too.
    if (has.length === 0) throw new PullFailure('not-an-image', `${reference.name} is not a container image: its index names no platform`)
    throw PlatformNotAvailable(reference.name, formatPlatform(options.host), shown(has.join(', ')))
  }
  const child = await fetched(options, chosen.digest)
  return describe(child, parse(child, reference.name), reference.name)
}

async function fetched ({ skopeo, upstream, reference, signal, timeoutMs }: ResolveOptions, end: string): Promise<string> {
  return await fetchManifest(skopeo, { access: upstream, name: reference.name, end }, { signal, timeoutMs })
}

function parse (raw: string, name: string): unknown {
  try {
    return JSON.parse(raw)
  } catch (error) {
    throw new PullFailure('corrupt', `the manifest of ${name} is not JSON`, error)
  }
}

function describe (raw: string, parsed: unknown, name: string): Resolved {
  if (isSchema1(parsed)) {
    throw new PullFailure('unsupported', `${name} has a manifest of schema 1, which is no longer supported; push it again with a current tool`)
  }
  if (!isManifest(parsed)) throw new PullFailure('not-an-image', `${name} is not a container image: its manifest has no config and layers`)
  const type = parsed.config.mediaType
  if (type !== undefined && !IMAGE_CONFIGS.has(type)) throw new PullFailure('not-an-image', `${name} is not a container image but ${shown(type)}`)
  const foreign = parsed.layers.find((layer) => layer.mediaType !== undefined && !LAYER.test(layer.mediaType))
  if (foreign !== undefined) throw new PullFailure('not-an-image', `${name} is not a container image: it has a layer of type ${shown(String(foreign.mediaType))}`)
  const layerBytes = sumOfSizes(parsed.layers.map(({ size }) => size ?? 0))
  if (layerBytes === undefined) throw new PullFailure('unsupported', `the manifest of ${name} names sizes of layers that cannot be true`)
  return {
    digest: digestOf(raw),
    layerBytes,
    recompress: parsed.layers.some((layer) => layer.mediaType?.endsWith('zstd') === true),
    layers: layersOf(parsed.layers)
  }
}

function shown (text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text
}
