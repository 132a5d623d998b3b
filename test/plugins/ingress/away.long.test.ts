// Ingresses whose create or delete fails as the database goes away: afterwards those that are stored are served, and no others.
import t from 'tap'
import { IngressRepository } from '../../../plugins/ingress/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { hanging } from '../../helpers/hanging.ts'
import { startIngress } from './app.ts'
import { skipReason } from './stage.ts'

const BODY = { name: 'shop', rules: [{ match: { hostname: 'shop.test' }, target: { instance: 'web', port: 8080 } }] }

t.test('a create whose answer was lost is taken back', { skip: skipReason() }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  failOnce(t, IngressRepository.prototype, 'insert', { done: true })
  t.ok((await app.call('POST', '/ingresses', BODY)).status >= 500)
  t.match(await app.call('GET', '/ingresses'), { status: 200, text: '[]' })
  await eventually('its name and host are free', async () => (await app.call('POST', '/ingresses', BODY)).status === 201, { limitMs: 30_000 })
  await eventually('it is served', async () => (await app.ask('shop')).status === 200)
})

t.test('what was deleted is not served, though nobody heard that it was', { skip: skipReason() }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  t.equal((await app.call('POST', '/ingresses', BODY)).status, 201)
  await eventually('it is served', async () => (await app.ask('shop')).status === 200)
  failOnce(t, IngressRepository.prototype, 'remove', { done: true })
  t.ok((await app.call('DELETE', '/ingresses/shop')).status >= 500)
  await eventually('it is gone', async () => (await app.call('GET', '/ingresses/shop')).status === 404, { limitMs: 30_000 })
  await eventually('it is not served', async () => (await app.ask('shop')).status === 404)
})

t.test('what could not be deleted is served as before', { skip: skipReason() }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  t.equal((await app.call('POST', '/ingresses', BODY)).status, 201)
  failOnce(t, IngressRepository.prototype, 'remove', { done: false })
  t.ok((await app.call('DELETE', '/ingresses/shop')).status >= 500)
  await new Promise((resolve) => { setTimeout(resolve, 1500) })
  await eventually('it is served', async () => (await app.ask('shop')).status === 200)
  t.equal((await app.call('DELETE', '/ingresses/shop')).status, 204)
})

t.test('creates that wait for one whose database hangs are refused with it', { skip: skipReason() }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  const create = async (name: string): Promise<number> => (await app.call('POST', '/ingresses', { name, rules: [{ match: { hostname: `${name}.test` }, target: { instance: 'web', port: 8080 } }] })).status
  const hang = hanging(t, IngressRepository.prototype, 'insert')
  t.same(await Promise.all(['a', 'b', 'c', 'd'].map(create)), [503, 503, 503, 503])
  t.equal(hang.times, 1)
  hang.end()
  await eventually('one is made', async () => await create('e') === 201, { limitMs: 30_000 })
})
