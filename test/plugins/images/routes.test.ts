import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { failureOf } from '../../helpers/failure.ts'
import { startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

t.test('wrong requests are refused with the field named', async (t) => {
  const app = await startImagesApp(t, { registry: false })
  const cases: ReadonlyArray<readonly [unknown, string, RegExp]> = [
    [{}, 'invalid_request', /name/],
    [{ name: 5 }, 'invalid_request', /name/],
    [{ name: '' }, 'invalid_request', /name/],
    [{ name: 'UPPER' }, 'invalid_name', /name/],
    [{ name: 'a', unknown: 1 }, 'invalid_request', /unknown/],
    [{ name: 'a', tags: { x: 1 } }, 'invalid_request', /tags/],
    [{ name: 'a', tags: { 'bad key!': 'x' } }, 'invalid_request', /tags/],
    [{ name: 'a', platform: 'linux' }, 'invalid_platform', /platform/],
    [{ name: 'a', credentials: { user: 'x' } }, 'invalid_request', /credentials/],
    [{ name: 'a', credentials: { username: 'x' } }, 'invalid_request', /credentials/]
  ]
  for (const [body, code, message] of cases) t.match(await app.request('POST', '/images', body), { status: 400, body: { code, message } }, JSON.stringify(body))
  for (const path of ['/images/UPPER', '/images/a%20b', '/images/x:']) t.match(await app.request('GET', path), { status: 400, body: { code: 'invalid_name' } }, path)
  t.match(await app.request('GET', '/images/none'), { status: 404, body: { code: 'not_found', message: 'image docker.io/library/none:latest does not exist' } })
  t.match(await app.request('DELETE', '/images/none'), { status: 404, body: { code: 'not_found' } })
  t.match(await app.request('POST', '/images/none/tag', { target: 'x' }), { status: 404 })
  t.match(await app.request('POST', '/images/none', { target: 'x' }), { status: 404 })
  t.match(await app.request('GET', '/images?limit=0'), { status: 400, body: { code: 'invalid_request' } })
  t.match(await app.request('GET', '/v2/'), { status: 404 }, 'without the registry plugin there is no /v2')
  t.match(await app.request('POST', '/images', { name: 'localhost/x' }), { status: 202, body: { status: 'failed', error: /not enabled/ } })
})

t.test('while an image is asked for, or a name given to one, nobody looks at a version and changes it', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const name = `${upstream.host}/team/app:1`
  await pushLayout(await writeLayout(`${await temporaryFolder(t)}/l`, [{ layers: [tar([{ path: 'f' }])] }]), name)
  await app.request('POST', '/images', { name })
  await app.settled(name)
  const path = `/images/${encodeURIComponent(name)}`
  const seen = String((await app.request('GET', path)).headers.get('etag'))

  // A registry that keeps silent.
  const silent = createServer(() => {})
  silent.listen(0, '127.0.0.1')
  t.teardown(() => { silent.close(); silent.closeAllConnections() })
  await once(silent, 'listening')
  const order: string[] = []
  const asked = app.request('POST', '/images', { name: `127.0.0.1:${Object(silent.address()).port}/team/other:1` }).then((answer) => { order.push('asked'); return answer })
  await once(silent, 'request')
  const removed = app.request('DELETE', path, undefined, undefined, { 'if-match': seen }).then((answer) => { order.push('removed'); return answer })
  for (let round = 0; round < 20; round++) t.equal((await app.request('GET', path)).status, 200)
  silent.closeAllConnections()
  silent.close()
  t.match(await asked, { status: 202 })
  t.match(await removed, { status: 204 })
  t.same(order, ['asked', 'removed'])
})

t.test('scopes are needed', async (t) => {
  const app = await startImagesApp(t, { registry: false })
  const key = (scope: string): string => app.deps.apiKeys.issueEphemeral('test', [scope], 60_000).key
  t.equal((await app.request('GET', '/images', undefined, key('image:write'))).status, 403)
  t.equal((await app.request('GET', '/images', undefined, key('image:read'))).status, 200)
  t.equal((await app.request('POST', '/images', { name: 'UPPER' }, key('image:read'))).status, 403)
  t.equal((await app.request('DELETE', '/images/x', undefined, key('image:write'))).status, 403)
  t.equal((await app.request('DELETE', '/images/x', undefined, key('image:delete'))).status, 404)
  t.equal((await app.request('GET', '/images', undefined, 'wrong')).status, 401)
})

t.test('names are taken encoded, half encoded, encoded twice or as they are; lists are filtered and paged', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const layout = await writeLayout(`${await temporaryFolder(t)}/l`, [{ layers: [tar([{ path: 'f' }])] }])
  const names = ['a:1', 'team/b:1', 'team/c:1'].map((end) => `${upstream.host}/${end}`)
  for (const [index, name] of names.entries()) {
    await pushLayout(layout, name)
    await app.sdk.images.create({ name, tags: { team: index === 0 ? 'x' : 'y', all: 'yes' } })
    await app.settled(name)
  }
  const name = String(names[1])
  for (const path of [name, encodeURIComponent(name), encodeURIComponent(encodeURIComponent(name)), name.replace('/', '%2f')]) {
    t.match(await app.request('GET', `/images/${path}`), { status: 200, body: { name } }, path)
  }
  t.equal((await app.sdk.images.get(name)).name, name)
  t.same((await app.sdk.images.list()).map((image) => image.name), names)
  t.same((await app.sdk.images.list({ tags: { team: 'y', all: 'yes' } })).map((image) => image.name), names.slice(1))
  t.same(await app.sdk.images.list({ tags: { team: 'z' } }), [])
  const page = await app.request('GET', '/images?limit=2')
  t.match(page.headers.get('link'), /rel="next"/)
  const next = /<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1] ?? ''
  const { body } = await app.request('GET', next)
  t.match(body, [{ name: names[2] }])
  const tagged = await app.sdk.images.tag(name, { target: 'local/name:2' })
  t.match(tagged, { name: 'docker.io/local/name:2', digest: layout.digest, status: 'ready' })
  await app.sdk.images.delete(name)
  t.match(await failureOf(app.sdk.images.get(name)), { status: 404 })
})
