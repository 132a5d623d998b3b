// Asks a registry what a reference means for this host: the digest of one manifest, and the size of its layers.
import { createHash } from 'node:crypto'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { ImageReference } from '../../core/library/oci/reference.ts'
import type { ImageSources, RegistryAccess } from './contract.ts'
import { PlatformNotAvailable } from './errors.ts'
import { PullFailure } from './failures.ts'
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
const Index = Type.Object({
  manifests: Type.Array(Type.Intersect([Descriptor, Type.Object({
    platform: Type.Optional(Type.Object({ os: Type.String(), architecture: Type.String(), variant: Type.Optional(Type.String()) }))
  })]))
})
const Manifest = Type.Object({ config: Descriptor, layers: Type.Array(Descriptor) })

const IMAGE_CONFIGS = new Set(['application/vnd.oci.image.config.v1+json', 'application/vnd.docker.container.image.v1+json'])
// An OCI manifest may contain another artifact despite the config type of an image; the media types of its layers show it.
const LAYER = /\.(?:tar|diff\.tar|rootfs|layer)|\+gzip$|\+zstd$/

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
  const raw = await fetchManifest(options, reference.digest ?? reference.tag ?? 'latest')
  const parsed = parse(raw, reference.name)
  if (!Value.Check(Index, parsed)) return describe(raw, parsed, reference.name)
  const chosen = choosePlatform(parsed.manifests, options.host)
  if (chosen === undefined) {
    const has = parsed.manifests.flatMap((entry) => entry.platform === undefined || entry.platform.os === 'unknown' ? [] : [formatPlatform(entry.platform)])
    // Build caches and other collections of blobs are indexes too.
    if (has.length === 0) throw new PullFailure('not-an-image', `${reference.name} is not a container image: its index names no platform`)
    throw PlatformNotAvailable(reference.name, formatPlatform(options.host), has.join(', '))
  }
  const child = await fetchManifest(options, chosen.digest)
  const resolved = describe(child, parse(child, reference.name), reference.name)
  if (resolved.digest !== chosen.digest) {
    throw new PullFailure('corrupt', `the manifest of ${reference.name} is not what its digest ${chosen.digest} promises`)
  }
  return resolved
}

async function fetchManifest (options: ResolveOptions, end: string): Promise<string> {
  const { upstream } = options
  const name = `docker://${upstream.repository}${end.startsWith('sha256:') ? '@' : ':'}${end}`
  const { stdout } = await options.skopeo(['inspect', '--raw', '--authfile', upstream.authFile, ...upstream.tlsVerify ? [] : ['--tls-verify=false'], name], [upstream],
    { signal: options.signal, timeoutMs: options.timeoutMs })
  return stdout
}

function parse (raw: string, name: string): unknown {
  try {
    return JSON.parse(raw)
  } catch (error) {
    throw new PullFailure('corrupt', `the manifest of ${name} is not JSON`, error)
  }
}

function describe (raw: string, parsed: unknown, name: string): Resolved {
  if (Value.Check(Type.Object({ schemaVersion: Type.Literal(1) }), parsed)) {
    throw new PullFailure('unsupported', `${name} has a manifest of schema 1, which is no longer supported; push it again with a current tool`)
  }
  if (!Value.Check(Manifest, parsed)) throw new PullFailure('not-an-image', `${name} is not a container image: its manifest has no config and layers`)
  const type = parsed.config.mediaType
  if (type !== undefined && !IMAGE_CONFIGS.has(type)) throw new PullFailure('not-an-image', `${name} is not a container image but ${type}`)
  const foreign = parsed.layers.find((layer) => layer.mediaType !== undefined && !LAYER.test(layer.mediaType))
  if (foreign !== undefined) throw new PullFailure('not-an-image', `${name} is not a container image: it has a layer of type ${String(foreign.mediaType)}`)
  return {
    digest: `sha256:${createHash('sha256').update(raw).digest('hex')}`,
    layerBytes: parsed.layers.reduce((sum, layer) => sum + (layer.size ?? 0), 0),
    recompress: parsed.layers.some((layer) => layer.mediaType?.endsWith('zstd') === true),
    layers: layersOf(parsed.layers)
  }
}
