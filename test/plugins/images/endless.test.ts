// A registry that says one thing in a manifest and sends another.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { readdir } from 'node:fs/promises'
import { arch } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startImagesApp } from '../../helpers/images-app.ts'
import { withoutNetworkNamespaces } from '../../helpers/rights.ts'

const MIB = 2 ** 20
/** far above what the pull of a tiny image may take */
const TOO_MUCH = 256 * MIB

function digestOf (text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

t.test('a layer that is announced small and never ends is cut off, and nothing of it stays', { skip: withoutNetworkNamespaces }, async (t) => {
  const layer = `sha256:${'a'.repeat(64)}`
  const config = JSON.stringify({ os: 'linux', architecture: arch() === 'x64' ? 'amd64' : arch(), config: {}, rootfs: { type: 'layers', diff_ids: [layer] } })
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: digestOf(config), size: config.length },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: layer, size: 127 }]
  })
  const piece = Buffer.alloc(MIB, 1)
  let sentBytes = 0
  const server = createServer((request, response) => {
    const { url = '' } = request
    if (url.includes('/manifests/')) return response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json', 'docker-content-digest': digestOf(manifest) }).end(manifest)
    if (url.includes(digestOf(config))) return response.writeHead(200).end(config)
    if (!url.includes(layer)) return response.writeHead(200).end('{}')
    const send = (): void => {
      while (sentBytes < TOO_MUCH && !response.destroyed) {
        sentBytes += MIB
        if (!response.write(piece)) return
      }
      response.end()
    }
    response.on('drain', send).on('error', () => {})
    response.writeHead(200)
    send()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  const app = await startImagesApp(t, { registry: false })
  const name = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/endless/image:1`
  t.equal((await app.request('POST', '/images', { name })).status, 202)
  const image = await app.settled(name)
  t.equal(image.status, 'failed')
  t.match(image.error, /sends more than the image's manifest announces, and was cut off after 16/)
  t.ok(sentBytes < TOO_MUCH / 2, `it sent ${sentBytes / MIB} MiB`)
  t.same(await readdir(join(app.dataDir, 'images')), [])
})
