// Makes OCI images as a registry serves them, in a layout folder written file by file, and pushes them with skopeo.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createHostCommands } from '../../core/process/run.ts'
import type { ImageConfig } from './images.ts'
import { tar } from './tar.ts'

export interface Descriptor { readonly mediaType: string, readonly digest: string, readonly size: number, readonly platform?: { os: string, architecture: string, variant?: string } }

/** One platform's image: its layers are finished tar archives, the lowest first. */
export interface OciImage {
  readonly layers: readonly Buffer[]
  readonly config?: ImageConfig
  readonly architecture?: string
  /** the command that made each layer; absent: `a test` */
  readonly commands?: readonly string[]
  /** how layers are packed */
  readonly packing?: 'gzip' | 'none' | 'zstd'
}

export interface OciLayout {
  /** `oci:<folder>`-able */
  readonly folder: string
  /** digest of the manifest or index behind the only name, `image` */
  readonly digest: string
  /** digests of the manifests, in the order in which the images were given */
  readonly manifests: readonly string[]
  readonly layers: readonly Descriptor[]
}

export interface Target { readonly username?: string, readonly password?: string }

export const hostArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64'

const commands = createHostCommands()
/** Without it a build upon the image finds none of its own steps again. */
const CREATED = '2026-01-01T00:00:00Z'

/** Writes a layout with one image, or with an index over several of different architectures. */
export async function writeLayout (folder: string, images: readonly OciImage[]): Promise<OciLayout> {
  await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true })
  const all: Descriptor[] = []
  const manifests: Descriptor[] = []
  for (const image of images) {
    const { manifest, layers } = await writeImage(folder, image)
    all.push(...layers)
    manifests.push({ ...manifest, platform: { os: 'linux', architecture: image.architecture ?? hostArchitecture } })
  }
  const only = manifests[0]
  if (only === undefined) throw new Error('a layout needs an image')
  const top = manifests.length === 1
    ? only
    : await writeBlob(folder, 'application/vnd.oci.image.index.v1+json', json({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests }))
  await writeFile(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  await writeFile(join(folder, 'index.json'), json({ schemaVersion: 2, manifests: [{ ...top, annotations: { 'org.opencontainers.image.ref.name': 'image' } }] }))
  return { folder, digest: top.digest, manifests: manifests.map((manifest) => manifest.digest), layers: all }
}

/** Pushes a layout with skopeo; `to` is `host:port/repository:tag`, over plain HTTP. */
export async function pushLayout (layout: OciLayout, to: string, { username, password }: Target = {}, format: 'oci' | 'v2s2' = 'oci'): Promise<void> {
  const args = ['copy', '--quiet', '--all', '--dest-tls-verify=false', ...format === 'oci' ? ['--preserve-digests'] : ['--format', format]]
  const login = await mkdtemp(join(tmpdir(), 'berth-login-'))
  try {
    const authFile = join(login, 'auth.json')
    const auth = Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')
    await writeFile(authFile, json(username === undefined ? {} : { auths: { [to.split('/')[0] ?? '']: { auth } } }), { mode: 0o600 })
    await commands.run('skopeo', [...args, '--dest-authfile', authFile, `oci:${layout.folder}:image`, `docker://${to}`])
  } finally {
    await rm(login, { recursive: true, force: true })
  }
}

/** The path of a blob in a layout. */
export function blobPath (folder: string, digest: string): string {
  return join(folder, 'blobs', ...digest.split(':'))
}

async function writeImage (folder: string, image: OciImage): Promise<{ manifest: Descriptor, layers: Descriptor[] }> {
  const packing = image.packing ?? 'gzip'
  const layers: Descriptor[] = []
  for (const layer of image.layers) layers.push(await writeBlob(folder, LAYER_TYPES[packing], await PACKERS[packing](layer)))
  const config = await writeBlob(folder, 'application/vnd.oci.image.config.v1+json', json({
    architecture: image.architecture ?? hostArchitecture,
    os: 'linux',
    config: image.config ?? {},
    rootfs: { type: 'layers', diff_ids: image.layers.map(digestOf) },
    history: image.layers.map((_, place) => ({ created: CREATED, created_by: image.commands?.[place] ?? 'a test' }))
  }))
  const manifest = json({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', config, layers })
  return { manifest: await writeBlob(folder, 'application/vnd.oci.image.manifest.v1+json', manifest), layers }
}

const LAYER_TYPES = {
  gzip: 'application/vnd.oci.image.layer.v1.tar+gzip',
  none: 'application/vnd.oci.image.layer.v1.tar',
  zstd: 'application/vnd.oci.image.layer.v1.tar+zstd'
} as const

const PACKERS: Readonly<Record<keyof typeof LAYER_TYPES, (layer: Buffer) => Promise<Buffer>>> = {
  gzip: async (layer) => gzipSync(layer, { level: 1 }),
  none: async (layer) => layer,
  zstd: packZstd
}

// Through files: the output of a host command is read as text.
async function packZstd (layer: Buffer): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-zstd-'))
  try {
    await writeFile(join(folder, 'layer'), layer)
    await commands.run('zstd', ['-q', '-1', join(folder, 'layer')])
    return await readFile(join(folder, 'layer.zst'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeBlob (folder: string, mediaType: string, content: Buffer): Promise<Descriptor> {
  const digest = digestOf(content)
  await writeFile(blobPath(folder, digest), content)
  return { mediaType, digest, size: content.length }
}

function digestOf (content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

function json (value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

const CHUNK_BYTES = 4 * 2 ** 20

/** Writes a layout whose only layer, not compressed, holds one file `big` of random bytes. It is never in memory as a whole. */
export async function writeBigLayout (folder: string, sizeBytes: number): Promise<OciLayout> {
  await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true })
  const path = join(folder, 'big.tar')
  const hash = createHash('sha256')
  const file = await open(path, 'w')
  const put = async (bytes: Buffer): Promise<void> => {
    hash.update(bytes)
    await file.write(bytes)
  }
  // the header of a whole archive with a file of that size: ustar pads contents to blocks and ends with two empty ones
  await put(bigHeader(sizeBytes))
  for (let written = 0; written < sizeBytes; written += CHUNK_BYTES) await put(randomBytes(Math.min(CHUNK_BYTES, sizeBytes - written)))
  await put(Buffer.alloc((512 - sizeBytes % 512) % 512 + 1024))
  await file.close()
  const digest = `sha256:${hash.digest('hex')}`
  await rename(path, blobPath(folder, digest))
  const size = (await stat(blobPath(folder, digest))).size
  const layer = { mediaType: LAYER_TYPES.none, digest, size }
  const config = await writeBlob(folder, 'application/vnd.oci.image.config.v1+json', json({
    architecture: hostArchitecture, os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: [digest] }, history: [{ created_by: 'a test' }]
  }))
  const manifest = await writeBlob(folder, 'application/vnd.oci.image.manifest.v1+json', json({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json', config, layers: [layer] }))
  await writeFile(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  await writeFile(join(folder, 'index.json'), json({ schemaVersion: 2, manifests: [{ ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'image' } }] }))
  return { folder, digest: manifest.digest, manifests: [manifest.digest], layers: [layer] }
}

function bigHeader (sizeBytes: number): Buffer {
  const header = tar([{ path: 'big' }]).subarray(0, 512)
  header.write(`${sizeBytes.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  header.write(' '.repeat(8), 148)
  header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
