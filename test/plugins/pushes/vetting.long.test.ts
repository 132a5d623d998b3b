// Where the target of a push, or whoever names one, can send this server: nowhere that the operator has not opened. Real skopeo and hostile registries.
import t, { type Test } from 'tap'
import { INNER_HOSTS, insider, listen, ownAddress, SECRET, withRealm, type Seen } from '../../helpers/hostile-registry.ts'
import type { ImagesApp } from '../../helpers/images-app.ts'
import { withoutNetworkNamespaces } from '../../helpers/rights.ts'
import { LOGIN } from '../../helpers/upstream-registry.ts'
import { ended, startPushesApp, textLayout, upload } from './app.ts'

const skip = withoutNetworkNamespaces
const REFUSED = /address that this server does not dial/

async function startWithImage (t: Test): Promise<ImagesApp> {
  const app = await startPushesApp(t)
  await upload(app, await textLayout(t, 'x'), 'app:1')
  return app
}

type Credentials = { readonly username: string, readonly password: string } | { readonly registry_token: string }

async function push (app: ImagesApp, target: string, credentials?: Credentials): Promise<{ readonly status: string, readonly error?: string | null }> {
  const { id } = await app.sdk.pushes.create({ image: 'app:1', target, ...credentials === undefined ? {} : { credentials } })
  return await ended(app, id)
}

/** A registry that takes pushes up to the bytes of a layer, and wants those elsewhere. */
async function redirecting (t: Test, place: string): Promise<Seen> {
  return await listen(t, '127.0.0.1', (request, response) => {
    if (request.url === '/v2/') response.writeHead(200).end()
    else if (request.method === 'POST') response.writeHead(202, { location: place.replace('127.0.0.1////', `${request.headers.host ?? ''}////`) }).end()
    else response.writeHead(404).end()
  })
}

t.test('the target of a push that sends the server to an inner service for a token gets nothing, no login goes there, and the service is not asked', { skip }, async (t) => {
  const app = await startWithImage(t)
  const inner = await insider(t)
  for (const host of INNER_HOSTS) {
    const hostile = await withRealm(t, `http://${host}:${inner.port}/token`)
    t.equal((await push(app, `${hostile.host}:${hostile.port}/evil/app:1`, LOGIN)).status, 'failed', host)
    t.notOk(hostile.requests.some((line) => line.includes(SECRET)), `${host}: the target has learnt nothing`)
  }
  t.same(inner.requests, [])
})

t.test('a target that wants the layers at an inner service leads the server nowhere', { skip }, async (t) => {
  const app = await startWithImage(t)
  const own = ownAddress()
  const services = [await insider(t), ...own === undefined ? [] : [await insider(t, own)]]
  for (const place of [...services.map(({ host, port }) => `http://${host}:${port}/x`), 'http://169.254.169.254/latest/meta-data/', 'http://10.1.2.3/x']) {
    const target = await redirecting(t, place)
    t.equal((await push(app, `${target.host}:${target.port}/evil/app:1`)).status, 'failed', place)
    t.ok(target.requests.some((line) => line.startsWith('POST ')), `${place}: it came as far as the layers`)
  }
  // A bearer token goes through a relay of this server's.
  for (const { host, port } of services) {
    for (const place of [`//${host}:${port}/x`, `////${host}:${port}/x`, `/\\${host}:${port}/x`, `../../../..//${host}:${port}/x`, `http://127.0.0.1////${host}:${port}/x`]) {
      const target = await redirecting(t, place)
      t.equal((await push(app, `${target.host}:${target.port}/evil/app:1`, { registry_token: 'a-token' })).status, 'failed', place)
      t.ok(target.requests.some((line) => line.startsWith('POST ')), `${place}: it came as far as the layers`)
    }
  }
  t.same(services.flatMap(({ requests }) => requests), [])
})

t.test('a caller who names an inner address as the target is refused, with a login as without', { skip }, async (t) => {
  const own = ownAddress()
  if (own === undefined) return t.comment('this machine has no address but loopback')
  const app = await startWithImage(t)
  const outer = await listen(t, own, (_request, response) => { response.writeHead(404).end() })
  for (const credentials of [undefined, LOGIN]) t.match(await push(app, `${own}:${outer.port}/a/app:1`, credentials), { status: 'failed', error: REFUSED })
  t.same(outer.requests, [])
})
