// A registry on loopback that serves one image at a time, with lies in whatever it says of it.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Random } from '../fuzz.ts'
import { disturb, jsonText, type Json } from './policy-values.ts'
import { tarBytes } from './tar-bytes.ts'
import { tar, type TarEntry } from '../../helpers/tar.ts'

const LONG_BYTES = 2 ** 26

interface Blob { readonly body: Buffer, readonly type: string, readonly lie: number }

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const INDEX = 'application/vnd.oci.image.index.v1+json'
const TYPES = [MANIFEST, INDEX, 'application/vnd.docker.distribution.manifest.v2+json', 'application/vnd.docker.distribution.manifest.list.v2+json', 'application/vnd.docker.distribution.manifest.v1+json', 'text/html', 'application/json', ''] as const
const LAYER_TYPES = ['application/vnd.oci.image.layer.v1.tar+gzip', 'application/vnd.oci.image.layer.v1.tar', 'application/vnd.oci.image.layer.v1.tar+zstd', 'application/vnd.docker.image.rootfs.diff.tar.gzip', 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', 'a/b', ''] as const
const ENTRIES: readonly TarEntry[] = [
  { path: 'bin', type: 'dir' }, { path: 'bin/sh', content: 'x', mode: 0o4755 }, { path: 'bin/.wh.sh' }, { path: '.wh..wh..opq' }, { path: 'bin/.wh..wh..opq' }, { path: '.wh.' }, { path: '.wh.bin' }, { path: '.wh...' }, { path: '.wh..' },
  { path: 'bin', type: 'symlink', target: '/etc' }, { path: 'bin/x', type: 'symlink', target: '../../..' }, { path: 'hard', type: 'hardlink', target: 'bin/sh' }, { path: 'hard', type: 'hardlink', target: '../../etc/passwd' }, { path: '/abs', content: 'x' },
  { path: '../up', content: 'x' }, { path: 'd/'.repeat(48), type: 'dir' }, { path: 'etc', content: 'a file' }, { path: 'proc', type: 'symlink', target: '/proc' }, { path: 'proc/self/x', content: 'x' }, { path: 'zeros', content: Buffer.alloc(2 ** 20) }
]

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export class HostileRegistry {
  readonly #server: Server
  readonly #blobs = new Map<string, Blob>()
  #top: Blob = { body: Buffer.alloc(0), type: '', lie: 0 }

  constructor () {
    this.#server = createServer((request, response) => { this.#answer(request.url ?? '', request.method === 'HEAD', response) })
  }

  async listen (): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const place = this.#server.address()
    if (place === null || typeof place === 'string') throw new Error('no port was given')
    return `127.0.0.1:${place.port}`
  }

  close (): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** Makes another image; gives what it is, to look at. */
  play (random: Random): string {
    this.#blobs.clear()
    const lie = random.once(3) ? 1 + random.below(7) : 0
    const diffs: Json[] = []
    const layers = random.many(4, () => this.#layer(random, lie, diffs))
    const config = this.#put(jsonText(random, disturb(random, { architecture: process.arch === 'arm64' ? 'arm64' : 'amd64', os: 'linux', config: { Cmd: ['/bin/sh'], Env: ['A=b'], User: '0', WorkingDir: '/', Labels: { a: 'b' }, ExposedPorts: { '80/tcp': {} } }, rootfs: { type: 'layers', diff_ids: diffs }, history: [] }, random.below(3))), 'application/vnd.oci.image.config.v1+json', lie)
    const manifest: Json = { schemaVersion: 2, mediaType: MANIFEST, config, layers }
    let top = jsonText(random, disturb(random, manifest, random.below(3)))
    let type: string = random.once(8) ? random.pick(TYPES) : MANIFEST
    if (random.once(4)) {
      const platform = { architecture: process.arch === 'arm64' ? 'arm64' : 'amd64', os: 'linux' }
      const inner = this.#put(top, type, lie)
      top = jsonText(random, disturb(random, { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...inner, platform }] }, random.below(3)))
      type = random.once(8) ? random.pick(TYPES) : INDEX
    }
    this.#top = { body: top, type, lie }
    return `lie ${lie}, ${type}: ${top.subarray(0, 2_000).toString('latin1')}`
  }

  #layer (random: Random, lie: number, diffs: Json[]): { [key: string]: Json } {
    const plain = random.once(4) ? tarBytes(random) : tar([...random.once(2) ? [{ path: 'bin', type: 'dir' as const }] : [], ...random.many(5, () => random.pick(ENTRIES))])
    diffs.push(random.once(8) ? digestOf(Buffer.from('x')) : digestOf(plain))
    const type = random.once(6) ? random.pick(LAYER_TYPES) : LAYER_TYPES[0]
    return this.#put(random.once(6) ? plain : gzipSync(plain), type, lie)
  }

  /** Keeps a blob, and gives what a manifest says of it. */
  #put (body: Buffer, mediaType: string, lie: number): { [key: string]: Json } {
    const digest = digestOf(body)
    this.#blobs.set(digest, { body, type: mediaType, lie })
    return { mediaType, digest, size: lie === 1 ? body.length + 1 : lie === 2 ? 0 : lie === 3 ? 2 ** 50 : body.length }
  }

  #answer (url: string, isHead: boolean, response: ServerResponse): void {
    response.on('error', () => {})
    const [, kind, reference = ''] = /\/(manifests|blobs)\/([^/?]+)$/.exec(url) ?? []
    if (kind === undefined) {
      response.end('{}')
      return
    }
    const blob = this.#blobs.get(reference) ?? (kind === 'manifests' ? this.#top : undefined)
    if (blob === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"errors":[{"code":"BLOB_UNKNOWN"}]}')
      return
    }
    const { body, type, lie } = blob
    if (lie === 4 && kind === 'blobs') return this.#long(response)
    response.writeHead(200, { ...type === '' ? {} : { 'content-type': type }, 'docker-content-digest': lie === 5 ? digestOf(Buffer.from('other')) : digestOf(body), ...isHead || lie === 6 ? { 'content-length': body.length + (lie === 6 ? 10 : 0) } : {} })
    if (isHead) response.end()
    else if (lie === 6) response.write(body, () => { response.destroy() })
    else response.end(lie === 7 && body.length > 0 ? Buffer.concat([body.subarray(0, -1), Buffer.from([(body.at(-1) ?? 0) ^ 1])]) : body)
  }

  /** Far more than was said. */
  #long (response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    const zeros = Buffer.alloc(2 ** 18)
    let left = LONG_BYTES
    const more = (): void => {
      for (; left > 0 && !response.destroyed; left -= zeros.length) if (!response.write(zeros)) return
      response.end()
    }
    response.on('drain', () => {
      left -= zeros.length
      more()
    })
    more()
  }
}
