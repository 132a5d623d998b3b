// How many pulls that are not over one key may have.
import t from 'tap'
import { listen } from '../../helpers/hostile-registry.ts'
import { KEY, startImagesApp } from '../../helpers/images-app.ts'

t.test('a key whose pulls hang may have no more of them, by itself or by a token of the registry, and may again when one is gone; nothing of the refused one stays', async (t) => {
  const app = await startImagesApp(t, { images: { maxPullsPerKey: 2, resolveWait: '1s' } })
  const silent = await listen(t, '127.0.0.1', () => {})
  const nameOf = (number: number): string => `${silent.host}:${silent.port}/slow/image:${number}`
  const exchanged = await fetch(`${app.url}/v2/token`, { headers: { authorization: `Bearer ${KEY}` } })
  const { token }: { token?: string } = Object.assign({}, await exchanged.json())
  for (const number of [1, 2]) t.equal((await app.request('POST', '/images', { name: nameOf(number) })).status, 202)
  for (const key of [KEY, token]) t.match(await app.request('POST', '/images', { name: nameOf(3) }, key), { status: 429, body: { code: 'too_many_pulls', message: /^the key ".+" has 2 pulls that are not over, and may have no more \(plugins\.images\.config\.maxPulls, maxPullsPerKey\)$/ } })
  t.equal((await app.request('GET', `/images/${encodeURIComponent(nameOf(3))}`)).status, 404)
  t.equal((await app.request('DELETE', `/images/${encodeURIComponent(nameOf(1))}`)).status, 204)
  t.equal((await app.request('POST', '/images', { name: nameOf(3) })).status, 202)
})
