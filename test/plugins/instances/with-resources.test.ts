// Who is short of room on the host while the proxy that instances go out through does not answer.
import t from 'tap'
import { create, startResources, TEN } from '../resources/app.ts'
import { asked, hostWith, NEXT, REAL, unavailable } from './egress-app.ts'
import { EgressUnavailable } from './scripted-egress.ts'

t.test('while the proxy takes no policy, who asks for room that is not there is told so at once, the instance can be deleted, and the server ends', async (t) => {
  const { host, egress } = hostWith(t)
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 1 } }, { host })
  t.match(await create(app, 'web', asked), { status: 201 })
  await app.waitFor('web', 'Running')
  host.failures.set('replace', EgressUnavailable())
  t.match(await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), unavailable)
  const began = performance.now()
  const full = { status: 409, body: { code: 'insufficient_resources', message: /cpu/ } }
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), full)
  t.match(await create(app, 'other'), full)
  t.ok(performance.now() - began < 5000, 'nobody waits for the proxy')
  t.equal(egress.valueOf(String((await app.call('GET', '/instances/web')).body['id']), 'SECRET'), REAL)
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  await app.app.stop()
})
