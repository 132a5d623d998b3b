// The routes of webhooks: what they take, and who may.
import t from 'tap'
import { startWithWebhooks } from './app.ts'
import { pauseAfter } from '../../../plugins/webhooks/delivery/backoff.ts'

const url = 'http://127.0.0.1:9/hook'

t.test('wrong addresses and filters are refused by name', async (t) => {
  const run = await startWithWebhooks(t)
  for (const [wrong, message] of [['ftp://example.com', 'url: must be an address'], ['example.com', 'url: must be an address'], ['http://me:secret@example.com', 'url: must have no user name'], ['http://example.com/#a', 'url: must have no fragment']] as const) {
    const answer = await run.call('POST', '/webhooks', { url: wrong })
    t.match(answer, { status: 400, body: { code: 'invalid_request', message: new RegExp(`^${message}`) } }, wrong)
  }
  t.match(await run.call('POST', '/webhooks', { url, filter: { resources: ['nothing'] } }), { status: 400, body: { message: /nothing has no events/ } })
  t.match(await run.call('POST', '/webhooks', { url, filter: { id: 'a' } }), { status: 400, body: { code: 'invalid_request' } })
  t.match(await run.call('POST', '/webhooks', { url, secret: 'mine' }), { status: 400 })
})

t.test('reading and changing need scopes of their own, and there are no more webhooks than allowed', async (t) => {
  const run = await startWithWebhooks(t, { maxWebhooks: 2 })
  const reader = run.apiKeys.issueEphemeral('reader', ['webhook:read'], 60_000).key
  const writer = run.apiKeys.issueEphemeral('writer', ['webhook:write'], 60_000).key
  const { id } = await run.make({ url }, writer)
  t.equal((await run.call('POST', '/webhooks', { url }, reader)).status, 403)
  t.equal((await run.call('PATCH', `/webhooks/${id}`, {}, reader)).status, 403)
  t.equal((await run.call('DELETE', `/webhooks/${id}`, undefined, reader)).status, 403)
  t.equal((await run.call('GET', `/webhooks/${id}`, undefined, writer)).status, 403)
  t.match(await run.call('GET', '/webhooks', undefined, reader), { status: 200, body: [{ id, url, filter: {}, enabled: true }] })
  await run.make({ url, enabled: false, filter: { tags: { a: 'b' } } })
  t.match(await run.call('POST', '/webhooks', { url }), { status: 409, body: { code: 'too_many_webhooks', message: /maxWebhooks/ } })
  t.match(await run.call('GET', '/webhooks?limit=1'), { status: 200, body: { length: 1 } })
  t.equal((await run.call('GET', '/webhooks/nothing')).status, 404)
})

t.test('pauses double up to the longest, and come to an end', (t) => {
  const backoff = { firstMs: 1000, mostMs: 600_000, totalMs: 86_400_000 }
  t.same([1, 2, 3, 11, 12].map((failures) => pauseAfter(failures, backoff, () => 1)), [1000, 2000, 4000, 600_000, 600_000])
  t.equal(pauseAfter(3, backoff, () => 0), 2000, 'at least half of it')
  t.equal(pauseAfter(152, backoff, () => 1), 600_000)
  t.equal(pauseAfter(154, backoff, () => 1), undefined)
  t.equal(pauseAfter(Number.MAX_SAFE_INTEGER, backoff), undefined)
  t.end()
})
