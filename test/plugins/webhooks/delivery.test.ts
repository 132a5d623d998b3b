// What is delivered: all that a caller wants and may read, signed, in order, over failures, restarts and gaps.
import { createHmac } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createSender } from '../../../plugins/webhooks/delivery/sender.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { usersOf } from '../../helpers/signal-users.ts'
import { startWithThings, type ThingsApp } from '../events/things.ts'
import { startWithWebhooks } from './app.ts'
import { startReceiver, taken, type Delivery, type Receiver } from './receiver.ts'

const shown = ({ event }: Delivery): string => `${event.type} ${String(event.data?.['id'])} ${String(event.data?.['status'])}`
const got = async (receiver: Receiver, count: number): Promise<void> => { await eventually(`${count} deliveries`, () => receiver.deliveries.length >= count, { explain: () => `${receiver.deliveries.length} came` }) }

eachDatabase(t, 'every change is delivered in order, signed so that its receiver can tell', async (t, _database, url) => {
  const receiver = await startReceiver(t)
  const run = await startWithWebhooks(t, {}, { database: url })
  await run.things.make('before')
  const { id, secret } = await run.make({ url: receiver.url })
  t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  await run.things.make('a', { team: 'x' })
  for (let status = 1; status < 150; status++) await run.things.set('a', String(status))
  await run.things.remove('a')
  await got(receiver, 151)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0', ...Array.from({ length: 149 }, (_, index) => `thing.updated a ${index + 1}`), 'thing.deleted a 149'])
  for (const { id: eventId, timestamp, signature, body, event } of receiver.deliveries) {
    t.equal(eventId, event.id)
    t.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 600)
    t.equal(signature, `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`${eventId}.${timestamp}.${body}`).digest('base64')}`)
  }
  t.equal(receiver.connections(), 1, 'by one connection')
  const last = receiver.deliveries.at(-1)?.id
  await run.known(id, last)
  const { body: view } = await run.call('GET', `/webhooks/${id.slice(0, 8)}`)
  t.match(view, { id, status: 'active', enabled: true, failed_attempts: 0, last_error: null })
  t.notOk('secret' in view, 'the secret is shown once')
  const [row] = await run.database('webhooks_webhooks')
  t.notMatch(JSON.stringify(row), secret.slice(6), 'and stored sealed')
  t.notMatch(JSON.stringify(run.lines), secret.slice(6))
})

eachDatabase(t, 'what changes while nobody takes it is delivered later, also by the server that starts after it', async (t, _database, url) => {
  const receiver = await startReceiver(t)
  const first = await startWithWebhooks(t, {}, { database: url })
  const { id } = await first.make({ url: receiver.url })
  await first.things.make('a')
  await got(receiver, 1)
  await receiver.down()
  await first.things.set('a', '1')
  const failing = await first.until(id, 'failing')
  t.match(failing.last_error, { message: 'it refused the connection' })
  t.ok(failing.failed_attempts > 0)
  await first.things.set('a', '2')
  await first.app.stop()
  await receiver.up()
  // The secret is sealed under the key of the data folder.
  const second = await startWithWebhooks(t, {}, { database: url, server: { dataDir: first.dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } } })
  await second.things.set('a', '3')
  await got(receiver, 4)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0', 'thing.updated a 1', 'thing.updated a 2', 'thing.updated a 3'])
  t.match(await second.until(id, 'active'), { failed_attempts: 0, last_error: null })
})

eachDatabase(t, 'a webhook whose place was stored by a server whose clock was an hour ahead gets what changes from then on', async (t, database, url) => {
  const receiver = await startReceiver(t)
  const first = await startWithWebhooks(t, {}, { database: url })
  const { id } = await first.make({ url: receiver.url })
  await first.things.make('a')
  await got(receiver, 1)
  await first.known(id, receiver.deliveries[0]?.id)
  await first.app.stop()
  const ahead = (Date.now() + 3_600_000) * 1000
  await database('webhooks_webhooks').update({ position: ahead })
  const second = await startWithWebhooks(t, {}, { database: url, server: { dataDir: first.dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } } })
  const [row] = await database('webhooks_webhooks')
  t.ok(Number(row.position) < ahead, 'it is put right before anything is delivered')
  await second.things.set('a', '1')
  await got(receiver, 2)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0', 'thing.updated a 1'])
})

t.test('a delivery leaves nothing in the signal that ends its courier', async (t) => {
  const receiver = await startReceiver(t)
  const sender = createSender(receiver.url, { resolve: async () => ['127.0.0.1'], roots: [], timeoutMs: 60_000, userAgent: 'berth' })
  const ending = new AbortController()
  for (let n = 0; n < 3; n++) t.equal(await sender.send('{}', {}, ending.signal), undefined)
  t.equal(usersOf(ending.signal), 0)
  receiver.answer = () => { ending.abort() }
  t.match(await sender.send('{}', {}, ending.signal), { isFinal: false }, 'which ends one that waits')
  sender.close()
})

t.test('filters are those of GET /events, and a key hears no more than it may read', async (t) => {
  const run = await startWithWebhooks(t)
  const receivers = await Promise.all(['tags', 'ids', 'blind', 'all'].map(async () => await startReceiver(t)))
  const [tags, ids, blind, all] = receivers
  if (tags === undefined || ids === undefined || blind === undefined || all === undefined) return
  await run.make({ url: tags.url, filter: { resources: ['thing'], tags: { team: 'x' } } })
  await run.make({ url: ids.url, filter: { ids: ['b', 'name-of-c'] } })
  const key = run.apiKeys.issueEphemeral('blind', ['webhook:write', 'image:read'], 60_000).key
  await run.make({ url: blind.url }, key)
  await run.make({ url: all.url })
  await run.things.make('a', { team: 'x' })
  await run.things.make('b1', { team: 'y' })
  await run.things.make('c')
  await run.things.make('end', { team: 'x' })
  await got(all, 4)
  await got(tags, 2)
  await got(ids, 2)
  t.same(tags.deliveries.map(shown), ['thing.created a 0', 'thing.created end 0'])
  t.same(ids.deliveries.map(shown), ['thing.created b1 0', 'thing.created c 0'])
  t.same(blind.deliveries, [])
})

t.test('webhooks themselves are told by GET /events and by no webhook', async (t) => {
  const run = await startWithWebhooks(t)
  const receiver = await startReceiver(t)
  const { id } = await run.make({ url: receiver.url })
  await run.call('PATCH', `/webhooks/${id}`, { enabled: false })
  await run.call('PATCH', `/webhooks/${id}`, { enabled: true })
  await run.things.make('a')
  await got(receiver, 1)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0'])
  const snapshot = await fetch(`${run.app.address()}/events/snapshot?resource=webhook`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const text = await snapshot.text()
  t.match(JSON.parse(text), { resources: [{ resource: 'webhook', id, status: 'active', enabled: true }] })
  t.notMatch(text, String(receiver.port), 'without its address')
  t.match(await run.call('POST', '/webhooks', { url: receiver.url, filter: { resources: ['webhook'] } }), { status: 400, body: { message: /^filter\.resources: / } })
})

eachDatabase(t, 'what changed while events were off is a gap for webhooks, and no place in the stream leads past it', async (t, _database, url) => {
  const receiver = await startReceiver(t)
  const first = await startWithWebhooks(t, {}, { database: url })
  const server = { dataDir: first.dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } }
  const ask = async ({ app }: ThingsApp, id: string): Promise<number> => {
    const answer = await fetch(`${app.address()}/events`, { headers: { authorization: `Bearer ${ADMIN_KEY}`, 'last-event-id': id } })
    await answer.body?.cancel()
    return answer.status
  }
  const { id } = await first.make({ url: receiver.url })
  await first.things.make('a')
  await got(receiver, 1)
  const last = receiver.deliveries[0]?.id ?? ''
  await first.known(id, last)
  await first.app.stop()
  // Off, without a change.
  await (await startWithThings(t, { withoutEvents: true, database: url, server })).app.stop()
  const second = await startWithWebhooks(t, {}, { database: url, server })
  t.equal(await ask(second, last), 200, 'nothing is missing')
  await second.app.stop()
  const off = await startWithThings(t, { withoutEvents: true, database: url, server })
  await off.things.set('a', '1')
  await t.rejects(off.things.changes.commit(async (_trx, note) => {
    note({ action: 'created', id: 'b', name: null, status: '0', tags: {} })
    await Promise.reject(new Error('not this one'))
  }))
  await off.things.set('a', '2')
  await off.app.stop()
  const third = await startWithWebhooks(t, {}, { database: url, server })
  t.equal(await ask(third, last), 410)
  await third.things.set('a', '3')
  await got(receiver, 3)
  t.same(receiver.deliveries.map(({ event }) => event.type), ['thing.created', 'gap', 'thing.updated'])
  const [, gap, updated] = receiver.deliveries
  t.match(gap?.event.data, { after_id: /^\d+$/, oldest_id: /^\d+$/ })
  t.ok(Number(gap?.event.data?.['oldest_id']) > Number(last))
  t.equal(await ask(third, updated?.id ?? ''), 200)
  await third.known(id, updated?.id)
  await third.app.stop()
  const fourth = await startWithWebhooks(t, {}, { database: url, server })
  t.equal(await ask(fourth, updated?.id ?? ''), 200, 'it is told once')
  await fourth.things.set('a', '4')
  await got(receiver, 4)
  t.match(receiver.deliveries.at(-1)?.event, { type: 'thing.updated', data: { status: '4' } })
})

t.test('a receiver that has missed what the journal has no more is told so, and gets the rest', async (t) => {
  const receiver = await startReceiver(t)
  const run = await startWithWebhooks(t, {}, { config: { maxEvents: 100 } })
  const { id } = await run.make({ url: receiver.url })
  await run.things.make('a')
  await got(receiver, 1)
  await run.call('PATCH', `/webhooks/${id}`, { enabled: false })
  for (let status = 1; status <= 300; status++) await run.things.set('a', String(status))
  await eventually('the first events are gone', async () => {
    const [row] = await run.database('events_hosts')
    return Number(row.passed) > Number(receiver.deliveries[0]?.id) + 1
  })
  await run.call('PATCH', `/webhooks/${id}`, { enabled: true })
  await eventually('the last one', () => receiver.deliveries.some(({ event }) => event.data?.['status'] === '300'))
  const [, first] = receiver.deliveries
  t.match(first?.event, { type: 'gap', id: first?.id, data: { after_id: /^\d+$/, oldest_id: /^\d+$/ } })
  // More may be removed while it is delivered.
  const last = receiver.deliveries.findLastIndex(({ event }) => event.type === 'gap')
  const rest = receiver.deliveries.slice(last + 1)
  t.ok(Number(rest[0]?.id) > Number(receiver.deliveries[last]?.event.data?.['oldest_id']))
  t.same(rest.map(({ event }) => Number(event.data?.['status'])), rest.map((_, index) => 301 - rest.length + index), 'without a hole from there on')
})

t.test('a receiver that is slow, endless, closes, redirects or fails costs itself alone', async (t) => {
  const run = await startWithWebhooks(t, { timeout: '2s' })
  const elsewhere = await startReceiver(t)
  const failures: Record<string, { receiver: Receiver, message: string }> = {
    silent: { receiver: await startReceiver(t, { answer: () => {} }), message: 'it did not answer within 2 s' },
    closing: { receiver: await startReceiver(t, { answer: (response) => { response.destroy() } }), message: 'it closed the connection without an answer' },
    redirecting: { receiver: await startReceiver(t, { answer: (response) => { response.writeHead(307, { location: elsewhere.url }).end() } }), message: 'it answered 307, and redirects are not followed' },
    broken: { receiver: await startReceiver(t, { answer: (response) => { response.writeHead(500).end('what only it knows') } }), message: 'it answered 500' },
    babbling: { receiver: await startReceiver(t, { answer: (response) => { response.socket?.end('what only it knows\r\n\r\n') } }), message: 'its answer is no HTTP' }
  }
  // It has taken the event, whatever it goes on saying.
  let sent = 0
  const endless = await startReceiver(t, {
    answer: (response) => {
      response.writeHead(200)
      const write = (): void => { while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536 }
      response.on('drain', write)
      write()
    }
  })
  const good = await startReceiver(t)
  const ids: Record<string, string> = {}
  for (const [name, { receiver }] of Object.entries(failures)) ids[name] = (await run.make({ url: receiver.url })).id
  await run.make({ url: endless.url })
  await run.make({ url: good.url })
  await run.things.make('a')
  for (let status = 1; status < 5; status++) await run.things.set('a', String(status))
  await got(good, 5)
  await got(endless, 5)
  t.ok(sent < 50_000_000, `${sent} bytes were sent of endless answers`)
  for (const [name, { receiver, message }] of Object.entries(failures)) {
    await got(receiver, 2)
    t.equal((await run.until(ids[name] ?? '', 'failing')).last_error?.message, message, name)
    t.equal(new Set(receiver.deliveries.map(({ id }) => id)).size, 1, `${name}: the same event again, with its id`)
    receiver.answer = taken
  }
  t.same(elsewhere.deliveries, [], 'nobody was sent elsewhere')
  for (const { receiver } of Object.values(failures)) await eventually('all has come', () => new Set(receiver.deliveries.map(({ id }) => id)).size === 5)
})

t.test('a receiver that answers with another protocol has failed, and its webhook can be changed and deleted', async (t) => {
  const run = await startWithWebhooks(t)
  const receiver = await startReceiver(t, { answer: (response) => { response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n') } })
  const { id } = await run.make({ url: receiver.url })
  await run.things.make('a')
  t.match(await run.until(id, 'failing'), { last_error: { message: 'it answered 101' } })
  receiver.answer = taken
  t.match(await run.until(id, 'active'), { last_error: null })
  t.equal((await run.call('DELETE', `/webhooks/${id}`)).status, 204)
})

t.test('one that fails for too long is dead for all to see, and goes on where it was once it is changed', async (t) => {
  const run = await startWithWebhooks(t, { retryFor: '100ms' })
  const receiver = await startReceiver(t, { answer: (response) => { response.writeHead(503).end() } })
  const { id } = await run.make({ url: receiver.url })
  await run.things.make('a')
  t.match(await run.until(id, 'dead'), { last_error: { message: 'it answered 503' }, last_delivery: null })
  const tries = receiver.deliveries.length
  t.ok(tries > 2 && tries < 20, `${tries} attempts`)
  await run.things.set('a', '1')
  receiver.answer = taken
  t.match((await run.call('PATCH', `/webhooks/${id}`, {})).body, { status: 'active', failed_attempts: 0, last_error: null })
  await got(receiver, tries + 2)
  t.same(receiver.deliveries.slice(tries).map(shown), ['thing.created a 0', 'thing.updated a 1'])
  receiver.answer = (response) => { response.writeHead(410).end() }
  await run.things.set('a', '2')
  t.match(await run.until(id, 'dead'), { last_error: { message: 'it answered 410: it wants no more' } })
  t.equal(receiver.deliveries.length, tries + 3, 'who wants no more is not asked twice')
})

t.test('with its key a webhook ends, and another key takes it over with the rights of its own', async (t) => {
  const run = await startWithWebhooks(t)
  const receiver = await startReceiver(t)
  const maker = run.apiKeys.issueEphemeral('maker', ['webhook:write', 'volume:read'], 60_000)
  const { id, key_id: keyId } = await run.make({ url: receiver.url }, maker.key)
  t.equal(keyId, maker.id)
  await run.things.make('a')
  await got(receiver, 1)
  maker.revoke()
  t.match(await run.until(id, 'dead'), { last_error: { message: 'the key that made it has ended' } })
  await run.things.set('a', '1')
  const blind = run.apiKeys.issueEphemeral('blind', ['webhook:write'], 60_000)
  const other = await startReceiver(t)
  t.match((await run.call('PATCH', `/webhooks/${id}`, { url: other.url }, blind.key)).body, { status: 'active', key_id: blind.id })
  await run.things.set('a', '2')
  const all = await startReceiver(t)
  await run.make({ url: all.url })
  await run.things.set('a', '3')
  await got(all, 1)
  t.same(other.deliveries, [], 'what the first key could read is not for the second')
  await run.call('PATCH', `/webhooks/${id}`, { url: receiver.url })
  await run.things.set('a', '4')
  await got(receiver, 2)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0', 'thing.updated a 4'])
})

t.test('with the BERTH_API_KEY that made it a webhook ends, and goes on while a server starts with the same', async (t) => {
  const receiver = await startReceiver(t)
  const start = async (apiKey: string, dataDir: string): ReturnType<typeof startWithWebhooks> => await startWithWebhooks(t, {}, { server: { dataDir, listen: '127.0.0.1:0', apiKey, metrics: { enabled: false } } })
  const dataDir = testFolder(t)
  const [leaked, next] = ['a-key-that-leaked', ADMIN_KEY]
  const first = await start(leaked, dataDir)
  const { id, key_id: keyId } = await first.make({ url: receiver.url }, leaked)
  t.equal(keyId, 'process', 'as GET /whoami has it: nothing by which the key could be guessed')
  await first.things.make('a')
  await got(receiver, 1)
  await first.known(id, receiver.deliveries[0]?.id, leaked)
  await first.app.stop()
  const second = await start(leaked, dataDir)
  await second.things.set('a', '1')
  await got(receiver, 2)
  await second.known(id, receiver.deliveries[1]?.id, leaked)
  await second.app.stop()
  const third = await start(next, dataDir)
  t.match(await third.until(id, 'dead'), { key_id: 'process', last_error: { message: 'the key that made it has ended' } })
  await third.things.set('a', '2')
  t.match((await third.call('PATCH', `/webhooks/${id}`, {})).body, { status: 'active', last_error: null })
  await got(receiver, 3)
  t.same(receiver.deliveries.map(shown), ['thing.created a 0', 'thing.updated a 1', 'thing.updated a 2'], 'the next key takes it over')
})

t.test('nothing is sent once a webhook is deleted', async (t) => {
  const run = await startWithWebhooks(t, { timeout: '10m' })
  const receiver = await startReceiver(t, { answer: () => {} })
  const { id } = await run.make({ url: receiver.url })
  await run.things.make('a')
  await got(receiver, 1)
  t.equal((await run.call('DELETE', `/webhooks/${id}`)).status, 204)
  await run.things.set('a', '1')
  const other = await startReceiver(t)
  await run.make({ url: other.url })
  await run.things.set('a', '2')
  await got(other, 1)
  await delay(50)
  t.equal(receiver.deliveries.length, 1)
  t.equal((await run.call('GET', `/webhooks/${id}`)).status, 404)
})
