// Requests through the ingress as a client of the API follows them, read by the decoder of the Go SDK.
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { decodeStream } from '../../helpers/line-decoder.ts'
import { PROGRAM, startIngress } from './app.ts'
import { skipReason } from './stage.ts'

t.test('requests to an instance are told as they come, each as one event, until the instance is deleted', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const app = await startIngress(t, { listen: true })
  for (const name of ['web', 'other']) {
    await app.makeGuest(name)
    t.match(await app.call('POST', '/ingresses', { name, rules: [{ match: { hostname: `${name}.test` }, target: { instance: name, port: PROGRAM } }] }), { status: 201 })
  }
  await app.ask('web', '/before')
  const answer = await fetch(`${app.app.address()}/instances/web/ingress/stream`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  t.match(answer, { status: 200 })
  t.match(answer.headers.get('content-type'), /^text\/event-stream/)
  const told = (async () => {
    const found: unknown[] = []
    for await (const { data } of decodeStream(answer.body)) {
      found.push(data)
      if (Object(data).path === '/last') await app.call('DELETE', '/instances/web')
    }
    return found
  })()
  for (const [name, path] of [['web', '/one'], ['other', '/not-told'], ['web', '/two?secret=1'], ['web', '/last']] as const) t.match(await app.ask(name, path), { status: 200 })
  const entry = { client: '127.0.0.1', method: 'GET', host: 'web.test', status: 200, tls: false }
  t.match(await told, [{ ...entry, path: '/one' }, { ...entry, path: '/two' }, { ...entry, path: '/last' }])
  const refused = await fetch(`${app.app.address()}/instances/nobody/ingress/stream`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  t.equal(refused.status, 404)
})
