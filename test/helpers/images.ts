// Container images made in memory, in the form that the SDK pushes.
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type Hypeman from '@onkernel/hypeman'
import { pushFromURL, type OciImageSource } from '@onkernel/hypeman/lib/push'
import { createHostCommands } from '../../core/process/run.ts'
import { installedProgram } from './installed-program.ts'
import { tar, type TarEntry } from './tar.ts'
import { eventually } from './eventually.ts'

/** a server, as its clients know it */
interface Reachable { readonly url: string, readonly key: string, readonly sdk: Hypeman }

export interface ImageConfig {
  readonly Env?: readonly string[]
  readonly Cmd?: readonly string[]
  readonly Entrypoint?: readonly string[]
  readonly User?: string
  readonly WorkingDir?: string
  readonly StopSignal?: string
}

function digest (content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

/** An image of these layers, the lowest first. */
export function makeImage (layers: ReadonlyArray<readonly TarEntry[]>, config: ImageConfig): OciImageSource {
  const archives = layers.map(layer => tar(layer))
  const blobs = archives.map((archive) => {
    const data = gzipSync(archive, { level: 1 })
    return { digest: digest(data), size: data.length, data }
  })
  const document = {
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: archives.map(digest) },
    history: layers.map(() => ({ created_by: 'a test' }))
  }
  return { config: async () => Buffer.from(JSON.stringify(document)), layers: async () => blobs }
}

/** A layer with busybox, its commands, and the accounts root and app (1000:1000). */
export async function busyboxLayer (): Promise<TarEntry[]> {
  const applets = (await createHostCommands().run('/bin/busybox', ['--list'])).stdout.trim().split('\n')
  return [
    ...['bin', 'etc', 'home/app', 'root'].map((path): TarEntry => ({ path, type: 'dir' })),
    { path: 'tmp', type: 'dir', mode: 0o1777 },
    ...await installedProgram('/bin/busybox'),
    ...applets.filter(applet => applet !== 'busybox').map((applet): TarEntry => ({ path: `bin/${applet}`, type: 'symlink', target: 'busybox' })),
    { path: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home/app:/bin/sh\n' },
    { path: 'etc/group', content: 'root:x:0:\napp:x:1000:\nstaff:x:50:app\n' }
  ]
}

/** An image with a shell. */
export async function busyboxImage (config: ImageConfig = {}, ...more: ReadonlyArray<readonly TarEntry[]>): Promise<OciImageSource> {
  return makeImage([await busyboxLayer(), ...more], { Env: ['PATH=/bin'], Cmd: ['/bin/sh'], ...config })
}

/** Pushes an image with the SDK's own code and waits until a machine can boot it. Resolves to the name that the server gives it. */
export async function push (server: Reachable, image: OciImageSource, name: string): Promise<string> {
  await pushFromURL(server.url, server.key, image, name)
  const reference = `${new URL(server.url).host}/${name}`
  return await imageReady(server, reference)
}

/** Waits until an image is ready and gives its normalised name; the API offers no other way than to ask. */
export async function imageReady (server: Pick<Reachable, 'sdk'>, reference: string): Promise<string> {
  return await eventually(`${reference} is ready`, async () => {
    const image = await server.sdk.images.get(reference)
    if (image.status === 'failed') throw new Error(`${reference}: ${image.error}`)
    return image.status === 'ready' && image.name
  })
}
