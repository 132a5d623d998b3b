// What callers may ask for, and what they get to hear.
import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { failureOf } from '../../helpers/failure.ts'
import { KEY } from '../../helpers/images-app.ts'
import { listen, lying } from '../../helpers/hostile-registry.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { ended, startPushesApp, textLayout, upload } from './app.ts'

t.test('wrong requests are refused with the field named', async (t) => {
  const app = await startPushesApp(t, { registry: false })
  const target = 'registry.example.com/app:1'
  const cases: ReadonlyArray<readonly [unknown, string, RegExp]> = [
    [{}, 'invalid_request', /image/],
    [{ image: 'a' }, 'invalid_request', /target/],
    [{ target }, 'invalid_request', /image/],
    [{ image: 5, target }, 'invalid_request', /image/],
    [{ image: '', target }, 'invalid_request', /image/],
    [{ image: 'a', target: '' }, 'invalid_request', /target/],
    [{ image: 'a', target, insecure: 'perhaps' }, 'invalid_request', /insecure/],
    [{ image: 'a', target, unknown: 1 }, 'invalid_request', /unknown/],
    [{ image: 'a', target, credentials: { user: 'x' } }, 'invalid_request', /credentials/],
    [{ image: 'a', target, credentials: { username: 'x' } }, 'invalid_request', /credentials/],
    [{ image: 'a', target, credentials: { username: 'x', password: 'y', registry_token: 'z' } }, 'invalid_request', /credentials/],
    [{ image: 'a', target, credentials: { registry_token: 'a b' } }, 'invalid_request', /registry_token/],
    [{ image: 'UPPER', target }, 'invalid_name', /^name/],
    [{ image: 'a', target: 'registry.example.com/UPPER' }, 'invalid_name', /^target/],
    [{ image: 'a', target: 'https://registry.example.com/app' }, 'invalid_name', /^target.*scheme/],
    [{ image: 'a', target: 'registry.example.com/app:not a tag' }, 'invalid_name', /^target/],
    [{ image: 'a', target: 'registry.example.com' }, 'invalid_target', /^target.*host of a registry/],
    [{ image: 'a', target: 'app:1' }, 'invalid_target', /^target.*host of a registry/],
    [{ image: 'a', target: 'team/app' }, 'invalid_target', /^target.*host of a registry/],
    [{ image: 'a', target: `registry.example.com/app@sha256:${'a'.repeat(64)}` }, 'invalid_target', /^target.*tag, not a digest/]
  ]
  for (const [body, code, message] of cases) t.match(await app.request('POST', '/pushes', body), { status: 400, body: { code, message } }, JSON.stringify(body))
  t.match(await app.request('POST', '/pushes', { image: 'none', target }), { status: 404, body: { code: 'not_found', message: 'image docker.io/library/none:latest does not exist' } })
  t.match(await app.request('GET', '/pushes/none'), { status: 404, body: { code: 'not_found', message: 'push none does not exist' } })
  t.match(await app.request('GET', '/pushes?limit=0'), { status: 400, body: { code: 'invalid_request' } })
  t.match(await app.request('GET', '/pushes?after=none'), { status: 400, body: { code: 'invalid_request' } })
  t.same((await app.request('GET', '/pushes')).body, [], 'nothing is kept of any')
})

t.test('an image that is on its way or has failed is a conflict that the SDK does not repeat', async (t) => {
  const app = await startPushesApp(t, { registry: false, images: { resolveWait: '100ms' } })
  const stalled = createServer(() => undefined)
  stalled.listen(0, '127.0.0.1')
  await once(stalled, 'listening')
  t.teardown(() => { stalled.close(); stalled.closeAllConnections() })
  const address = stalled.address()
  const name = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/late:1`
  await app.sdk.images.create({ name })
  const refused = await app.request('POST', '/pushes', { image: name, target: 'registry.example.com/app' })
  t.match(refused, { status: 409, body: { code: 'image_not_ready', message: /is pending, not ready/ } })
  t.equal(refused.headers.get('x-should-retry'), 'false')
  await app.sdk.images.delete(name)
  await app.sdk.images.create({ name: 'localhost/none:1' })
  t.equal((await app.settled('localhost/none:1')).status, 'failed')
  t.match(await app.request('POST', '/pushes', { image: 'localhost/none:1', target: 'registry.example.com/app' }), { status: 409, body: { message: /is failed, not ready/ } })
})

t.test('scopes are needed', async (t) => {
  const app = await startPushesApp(t, { registry: false })
  const key = (...scopes: string[]): string => app.deps.apiKeys.issueEphemeral('test', scopes, 60_000).key
  const body = { image: 'none', target: 'registry.example.com/app' }
  for (const scope of ['image:write', 'push:read', 'image:read']) t.match(await app.request('POST', '/pushes', body, key(scope)), { status: 403, body: { message: 'missing required scope: push:write' } })
  t.match(await app.request('POST', '/pushes', body, key('push:write', 'image:write')), { status: 403, body: { message: 'missing required scope: image:read' } }, 'a push hands its image to whoever reads at its target')
  t.equal((await app.request('POST', '/pushes', body, key('push:write', 'image:read'))).status, 404)
  for (const path of ['/pushes', '/pushes/none']) t.equal((await app.request('GET', path, undefined, key('image:read'))).status, 403)
  t.equal((await app.request('GET', '/pushes', undefined, key('push:read'))).status, 200)
  t.equal((await app.request('GET', '/pushes', undefined, 'wrong')).status, 401)
})

t.test('the shared caches of builds, which everybody\'s builds take layers from, take no push of a key without build:admin', async (t) => {
  const app = await startPushesApp(t)
  const key = (...scopes: string[]): string => app.deps.apiKeys.issueEphemeral('test', ['push:write', 'image:read', ...scopes], 60_000).key
  for (const place of ['localhost/cache/global/node', `${app.host}/cache/global/node:latest`, `${app.host}/cache/global`]) {
    const body = { image: 'none', target: place }
    t.match(await app.request('POST', '/pushes', body, key()), { status: 403, body: { message: 'missing required scope: build:admin' } }, place)
    t.equal((await app.request('POST', '/pushes', body, key('build:admin'))).status, 404, `${place}, with it`)
  }
  for (const place of [`${app.host}/cache/globals`, 'registry.example.com/cache/global/node']) t.equal((await app.request('POST', '/pushes', { image: 'none', target: place }, key())).status, 404, place)
})

t.test('a push whose key has ended does not begin, also after a restart', async (t) => {
  const app = await startPushesApp(t, {}, { concurrency: 1, pushTimeout: '2s' })
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const silent = await listen(t, '127.0.0.1', () => {})
  const { body: { id: keyId, key } } = await app.request('POST', '/keys', { name: 'leaked', scopes: ['push:write', 'image:read'] })
  const push = async (number: number, by?: string): Promise<string> => String((await app.request('POST', '/pushes', { image: 'app:1', target: `${silent.host}:${silent.port}/slow/app:${number}` }, by)).body['id'])
  const ids = [await push(1), await push(2, String(key)), await push(3)]
  t.equal((await app.request('DELETE', `/keys/${String(keyId)}`)).status, 204)
  const next = await app.restart()
  const [first, leaked, last] = await Promise.all(ids.map(async (id) => await ended(next, id)))
  t.match(leaked, { status: 'failed', error: 'the key that asked for it has ended' })
  for (const push of [first, last]) t.notMatch(push?.error, /key/)
})

t.test('a key that is limited to repositories pushes to no other', async (t) => {
  const app = await startPushesApp(t)
  const { key } = app.deps.apiKeys.issueEphemeral('test', ['image:read', 'push:write'], 60_000, ['registry.example.com/team/*', 'localhost/app'])
  const push = async (target: string): Promise<[number, unknown]> => {
    const { status, body } = await app.request('POST', '/pushes', { image: 'none', target }, key)
    return [status, body['message']]
  }
  for (const target of ['registry.example.com/team/app:1', 'localhost/app:1', `${app.host}/app`]) t.equal((await push(target))[0], 404, target)
  for (const target of ['registry.example.com/other/app', 'registry.example.com/teamster/app', 'evil.example.com/team/app', 'localhost/app/more', `${app.host}/busybox`, 'docker.io/team/app']) t.equal((await push(target))[0], 403, target)
  t.same(await push(`${app.host}/busybox:1`), [403, 'this key may not write to the repository localhost/busybox'])
})

t.test('the official SDK tags, pushes, lists and reads', async (t) => {
  const target = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  const layout = await textLayout(t, 'sdk')
  await upload(app, layout, 'app:1')
  const tagged = await app.sdk.images.tag('app:1', { target: 'localhost/app:stable' })
  t.match(tagged, { name: 'localhost/app:stable', digest: layout.digest, status: 'ready' })
  const created = await app.sdk.pushes.create({ image: 'app:stable', target: `${target.host}/app:stable` })
  t.match(created, { image: 'localhost/app:stable', target: `${target.host}/app:stable`, digest: layout.digest })
  const push = await ended(app, created.id)
  t.match(push, { status: 'pushed', layers: 1, bytes: layout.layers[0]?.size, error: null, queue_position: null })
  t.same(await app.sdk.pushes.list(), [push])
  t.match(await failureOf(app.sdk.pushes.get('none')), { status: 404 })
  t.match(await failureOf(app.sdk.pushes.create({ image: 'none', target: `${target.host}/none` })), { status: 404 })
})

t.test('what is sent twice with one Idempotency-Key happens once', async (t) => {
  const target = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  await upload(app, await textLayout(t, 'twice'), 'app:1')
  const send = async (): Promise<Response> => await fetch(`${app.url}/pushes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'idempotency-key': 'one' },
    body: JSON.stringify({ image: 'app:1', target: `${target.host}/app:1` })
  })
  const [first, second] = [await send(), await send()]
  t.same([first.status, second.status], [202, 202])
  t.equal(second.headers.get('location'), first.headers.get('location'))
  const all = await app.sdk.pushes.list()
  t.equal(all.length, 1)
  t.match(await ended(app, String(all[0]?.id)), { status: 'pushed' })
})

t.test('a registry that gives another manifest for the digest of an image has failed its push, and no list of pushes', async (t) => {
  const app = await startPushesApp(t, { registry: false })
  const layout = await textLayout(t, 'x')
  const others = new Map<string, string>()
  const origin = await lying(t, [layout], others)
  const image = `${origin.host}:${origin.port}/app@${layout.digest}`
  await app.sdk.images.create({ name: image })
  t.match(await app.settled(image), { status: 'ready' })
  others.set(layout.digest, JSON.stringify({ schemaVersion: 2, layers: [{ size: 1e308 }, { size: 1e308 }] }))
  const { status, body } = await app.request('POST', '/pushes', { image, target: `${origin.host}:${origin.port}/copy:1` })
  t.equal(status, 202)
  const push = await ended(app, String(body['id']))
  t.match(push, { status: 'failed', error: `the manifest of ${image} is not what its digest ${layout.digest} promises` })
  t.notOk('bytes' in push, 'nothing of it is shown')
  t.match(await app.request('GET', '/pushes'), { status: 200, body: [{ id: push.id }] })
})
