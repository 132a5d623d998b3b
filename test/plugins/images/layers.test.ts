// What is told of an image's layers, of what they share, and of who uses the image.
import { join } from 'node:path'
import t from 'tap'
import { historyOf } from '../../../plugins/images/layers/history.ts'
import { layersOf, MOST_LAYERS } from '../../../plugins/images/layers/layers.ts'
import { startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

const HOSTILE = '<img src=x onerror=alert(1)>'
const digest = (number: number): string => `sha256:${number.toString(16).padStart(64, '0')}`

t.test('an image tells its layers, which of them others have, and who keeps it', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const base = tar([{ path: 'base', content: 'b'.repeat(5000) }])
  const own = tar([{ path: 'own', content: 'o'.repeat(900) }])
  const one = await writeLayout(join(folder, 'one'), [{ layers: [base, own, base], commands: ['ADD base', HOSTILE, 'x'.repeat(2000)] }])
  const two = await writeLayout(join(folder, 'two'), [{ layers: [base], packing: 'gzip' }])
  const names = [`${upstream.host}/one:1`, `${upstream.host}/two:1`] as const
  await pushLayout(one, names[0])
  await pushLayout(two, names[1])
  const path = `/images/${encodeURIComponent(names[0])}`
  const details = async (): Promise<unknown> => (await app.request('GET', `${path}?details=true`)).body['details']
  await app.request('POST', '/images', { name: names[0] })
  t.match(await app.settled(names[0]), { status: 'ready' })
  const [lowest, middle] = one.layers
  t.match(await details(), { shared_compressed_bytes: 0, own_compressed_bytes: Number(lowest?.size) + Number(middle?.size), names: [names[0]], used_by: { total: 0, holders: [] } }, 'a layer that comes twice counts once')
  await app.request('POST', '/images', { name: names[1] })
  await app.settled(names[1])
  await app.images.hold(one.digest, 'instance:abc')
  await app.sdk.images.tag(names[0], { target: 'local/other:1' })
  const { body } = await app.request('GET', `${path}?details=true`)
  t.match(body, {
    digest: one.digest,
    details: {
      layers: [
        { digest: lowest?.digest, media_type: lowest?.mediaType, size_bytes: lowest?.size, created_by: 'ADD base', shared_by: 1 },
        { digest: middle?.digest, created_by: HOSTILE, shared_by: 0 },
        { digest: lowest?.digest, created_by: 'x'.repeat(500), shared_by: 1 }
      ],
      layer_count: 3,
      compressed_bytes: one.layers.reduce((sum, { size }) => sum + size, 0),
      shared_compressed_bytes: lowest?.size,
      own_compressed_bytes: middle?.size,
      disk_bytes: body['size_bytes'],
      used_by: { total: 1, holders: [{ kind: 'instance', id: 'abc' }] }
    }
  })
  t.same(new Set(Object(body['details']).names), new Set([names[0], 'docker.io/local/other:1']))
  t.notOk('details' in (await app.request('GET', path)).body, 'who does not ask gets the image alone')
  t.match(await app.request('GET', `${path}?details=maybe`), { status: 400, body: { code: 'invalid_request', message: /details/ } })

  await app.sdk.images.delete(names[1])
  t.match(await details(), { shared_compressed_bytes: 0 }, 'an image that is gone shares nothing')
  const again = await app.restart()
  t.match((await again.request('GET', `${path}?details=true`)).body, { details: { layer_count: 3, layers: [{}, { created_by: HOSTILE }, {}] } }, 'all of it outlives the server')
})

t.test('of thousands of layers the number is kept, and of their sizes what a size can be', async (t) => {
  const many = layersOf(Array.from({ length: 30_000 }, (_, number) => ({ digest: digest(number), size: 10, mediaType: 'm'.repeat(5000) })))
  t.match(many, { count: 30_000, kept: { length: MOST_LAYERS } })
  t.equal(many.kept[0]?.mediaType?.length, 200)
  t.same(layersOf([-1, 0.5, 1e300, 7].map((size) => ({ digest: digest(1), size }))).kept.map(({ sizeBytes }) => sizeBytes), [0, 0, 0, 7])
})

t.test('a history counts only if it fits the layers', async (t) => {
  const rootfs = { type: 'layers', diff_ids: ['a', 'b'] }
  t.same(historyOf({ rootfs, history: [{ created_by: 'one' }, { created_by: 'ENV x', empty_layer: true }, {}] }), ['one', ''])
  for (const bad of [{ rootfs }, { rootfs, history: null }, { rootfs, history: [{ created_by: 'one' }] }, { rootfs, history: [{ created_by: 5 }, {}] }, { history: [{}, {}] }, undefined]) t.equal(historyOf(bad), undefined, JSON.stringify(bad))
  const long = historyOf({ rootfs: { diff_ids: Array.from({ length: 5000 }, () => 'd') }, history: Array.from({ length: 5000 }, () => ({ created_by: 'c'.repeat(9999) })) })
  t.match(long, { length: MOST_LAYERS })
  t.equal(long?.[0]?.length, 500)
})
