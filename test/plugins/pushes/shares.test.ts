// How many pushes that are not over one key may have.
import t from 'tap'
import { listen } from '../../helpers/hostile-registry.ts'
import { ended, startPushesApp, textLayout, upload } from './app.ts'

t.test('a key whose pushes hang may have no more of them, and may again when one is over', async (t) => {
  const app = await startPushesApp(t, {}, { maxPushesPerKey: 2, pushTimeout: '5s' })
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const silent = await listen(t, '127.0.0.1', () => {})
  const push = async (number: number): ReturnType<typeof app.request> => await app.request('POST', '/pushes', { image: 'app:1', target: `${silent.host}:${silent.port}/slow/app:${number}` })
  const begun = [await push(1), await push(2)]
  t.match(begun, [{ status: 202 }, { status: 202 }])
  t.match(await push(3), { status: 429, body: { code: 'too_many_pushes', message: /^the key ".+" has 2 pushes that are not over/ } })
  for (const { body } of begun) t.equal((await ended(app, String(body['id']))).status, 'failed')
  t.equal((await push(4)).status, 202)
})

t.test('pushes that are not over count for their key after a restart, too', async (t) => {
  const app = await startPushesApp(t, {}, { maxPushesPerKey: 2, pushTimeout: '60s' })
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const silent = await listen(t, '127.0.0.1', () => {})
  const push = async (to: typeof app, number: number): ReturnType<typeof app.request> => await to.request('POST', '/pushes', { image: 'app:1', target: `${silent.host}:${silent.port}/slow/app:${number}` })
  t.match([await push(app, 1), await push(app, 2)], [{ status: 202 }, { status: 202 }])
  t.match(await push(await app.restart(), 3), { status: 429, body: { code: 'too_many_pushes', message: /^the key ".+" has 2 pushes that are not over/ } })
})
