// Makes a root file system from an image in a registry: skopeo copies, umoci unpacks, mkfs.erofs packs. There are no further copies in between.
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { shape } from '../../core/json/shape.ts'
import type { ImageSources, RegistryAccess } from './contract.ts'
import { PullFailure } from './failures.ts'
import { ROOTFS, sizeOf, type Folders, type StoredContent } from './folders.ts'
import { readImageConfig, type ReadConfig } from './image-config.ts'
import type { FileOwners } from './owners.ts'
import { formatPlatform, type Platform } from './platform.ts'

export interface Conversion {
  readonly owners: FileOwners
  readonly skopeo: ImageSources['skopeo']
  readonly folders: Folders
  readonly upstream: RegistryAccess
  /** for messages */
  readonly name: string
  readonly digest: string
  readonly recompress: boolean
  readonly host: Platform
  readonly compression: 'none' | 'lz4'
  /** private folder of this piece of work */
  readonly work: string
  readonly timeoutMs: number
  /** of all layers together, as the manifest says */
  readonly layerBytes: number
  readonly signal: AbortSignal
  /** called now and then with the number of received bytes */
  readonly received: (bytes: number) => void
  /** called when the image has been received and is about to be unpacked */
  readonly converting: () => Promise<void>
}

const LAYOUT_NAME = 'image'
/** skopeo retries twice when a connection breaks */
const ATTEMPTS = 3
/** factor for TLS and the headers of answers */
const OVERHEAD = 1.1
/** manifest, configuration, tokens, and the redirections of many small layers */
const SLACK_BYTES = 16 * 2 ** 20
const Reference = Type.Object({ digest: Type.String({ pattern: '^[a-z0-9]+:[0-9a-f]+$' }) })
const isLayoutIndex = shape(Type.Object({ manifests: Type.Array(Reference) }))
const isLayoutManifest = shape(Type.Object({ config: Reference }))

/** Pulls and converts; resolves to the folder to publish and what it holds. */
export async function convert (conversion: Conversion): Promise<{ folder: string, content: StoredContent }> {
  const { work, owners, signal, timeoutMs, digest } = conversion
  const layout = join(work, 'layout')
  const rootfs = join(work, 'rootfs')
  const folder = join(work, 'content')
  await mkdir(folder)
  await copy(conversion, layout)
  const config = await readConfig(layout, conversion)
  await conversion.converting()
  // `raw unpack`: makes no runtime bundle, and above all does not read every file again for checksums.
  await owners.run('umoci', ['raw', 'unpack', '--image', `${layout}:${LAYOUT_NAME}`, rootfs], { signal, timeoutMs })
  const pack = owners.run('mkfs.erofs',
    ['--quiet', '--preserve-mtime', ...conversion.compression === 'lz4' ? ['-zlz4'] : [], join(folder, ROOTFS), rootfs],
    { signal, timeoutMs })
  // the layers are no longer needed: their space is freed while the packing runs
  await Promise.all([pack, conversion.folders.clear(layout)])
  const sizeBytes = await sizeOf(folder)
  return { folder, content: { digest, platform: formatPlatform(config.platform), sizeBytes, run: config.run, ...config.createdBy === undefined ? {} : { createdBy: config.createdBy } } }
}

async function copy (conversion: Conversion, layout: string): Promise<void> {
  const { upstream, skopeo, signal, timeoutMs, layerBytes } = conversion
  await skopeo([
    'copy', '--quiet', '--retry-times', String(ATTEMPTS - 1), '--remove-signatures',
    '--src-authfile', upstream.authFile,
    ...upstream.tlsVerify ? [] : ['--src-tls-verify=false'],
    // umoci 0.4 reads gzip and plain tar, but no zstd; other compressions are left unchanged
    ...conversion.recompress ? ['--dest-compress-format', 'gzip', '--dest-compress-level', '1'] : ['--dest-oci-accept-uncompressed-layers'],
    `docker://${upstream.repository}@${conversion.digest}`, `oci:${layout}:${LAYOUT_NAME}`
  ], [upstream], { signal, timeoutMs, env: { TMPDIR: conversion.work }, received: conversion.received, maxBytes: Math.ceil(layerBytes * OVERHEAD * ATTEMPTS) + SLACK_BYTES })
}

async function readConfig (layout: string, conversion: Conversion): Promise<ReadConfig> {
  const { name, host } = conversion
  const index = await readJson(join(layout, 'index.json'))
  const manifestDigest = isLayoutIndex(index) ? index.manifests[0]?.digest : undefined
  const manifest = manifestDigest === undefined ? undefined : await readJson(blob(layout, manifestDigest))
  const config = isLayoutManifest(manifest) ? readImageConfig(await readFile(blob(layout, manifest.config.digest), 'utf8')) : undefined
  if (config === undefined) throw new PullFailure('not-an-image', `${name} is not a container image: its configuration cannot be read`)
  if (config.platform.os !== host.os || config.platform.architecture !== host.architecture) {
    throw new PullFailure('wrong-platform', `${name} is made for ${formatPlatform(config.platform)}; this host runs ${formatPlatform(host)}`)
  }
  return config
}

async function readJson (path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'))
}

function blob (layout: string, digest: string): string {
  return join(layout, 'blobs', ...digest.split(':'))
}
