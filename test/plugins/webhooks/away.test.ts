// What becomes of a webhook whose change meets a database that goes away.
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { WebhookRepository } from '../../../plugins/webhooks/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { hanging } from '../../helpers/hanging.ts'
import { startWithWebhooks, type Webhook, type WebhooksApp } from './app.ts'
import { startReceiver, type Receiver } from './receiver.ts'

const got = async (receiver: Receiver, count: number): Promise<void> => { await eventually(`${count} deliveries`, () => receiver.deliveries.length >= count, { explain: () => `${receiver.deliveries.length} came`, limitMs: 10_000 }) }

/** A webhook that has delivered one event, and has stored it: it has nothing more to store when it is stopped. */
async function startDelivered (t: Test): Promise<{ run: WebhooksApp, receiver: Receiver, webhook: Webhook }> {
  const receiver = await startReceiver(t)
  const run = await startWithWebhooks(t)
  const webhook = await run.make({ url: receiver.url })
  await run.things.make('a')
  await got(receiver, 1)
  await run.known(webhook.id, receiver.deliveries[0]?.id)
  return { run, receiver, webhook }
}

/** Fails the read of a webhook that comes after some others. */
function failRead (t: Test, others: number): void {
  const { prototype } = WebhookRepository
  const real = prototype.alike
  const restore = (): void => { prototype.alike = real }
  t.teardown(restore)
  let calls = 0
  prototype.alike = async function (text) {
    if (calls++ < others) return await real.call(this, text)
    restore()
    throw new Error('Connection lost')
  }
}

t.test('a webhook whose delete was stored and whose answer was lost sends nothing more', async (t) => {
  const { run, receiver, webhook } = await startDelivered(t)
  failOnce(t, WebhookRepository.prototype, 'remove', { done: true })
  t.ok((await run.call('DELETE', `/webhooks/${webhook.id}`)).status >= 500)
  t.equal((await run.call('DELETE', `/webhooks/${webhook.id}`)).status, 404)
  const other = await startReceiver(t)
  await run.make({ url: other.url })
  await run.things.set('a', '1')
  await got(other, 1)
  await delay(500)
  t.equal(receiver.deliveries.length, 1)
})

t.test('a webhook whose change was stored and whose answer was lost is as it was changed', async (t) => {
  const { run, receiver, webhook } = await startDelivered(t)
  const other = await startReceiver(t)
  failOnce(t, WebhookRepository.prototype, 'update', { done: true })
  t.ok((await run.call('PATCH', `/webhooks/${webhook.id}`, { url: other.url })).status >= 500)
  await run.things.set('a', '1')
  await got(other, 1)
  t.equal(receiver.deliveries.length, 1)
  const [delivery] = other.deliveries
  await run.known(webhook.id, delivery?.id)
  t.match(await run.database('webhooks_webhooks'), [{ url: other.url }])
})

t.test('a webhook that could not be changed or deleted goes on', async (t) => {
  const { run, receiver, webhook } = await startDelivered(t)
  const path = `/webhooks/${webhook.id}`
  const failing = [
    ...[0, 1, 2].map((others) => async () => { failRead(t, others); return await run.call('PATCH', path, { filter: {} }) }),
    async () => { failOnce(t, WebhookRepository.prototype, 'update', { done: false }); return await run.call('PATCH', path, { filter: {} }) },
    ...[0, 1].map((others) => async () => { failRead(t, others); return await run.call('DELETE', path) }),
    async () => { failOnce(t, WebhookRepository.prototype, 'remove', { done: false }); return await run.call('DELETE', path) }
  ]
  for (const [index, fail] of failing.entries()) {
    t.ok((await fail()).status >= 500)
    await run.things.set('a', String(index + 1))
    await eventually(`event ${index + 1} comes`, () => receiver.deliveries.some(({ event }) => event.data?.['status'] === String(index + 1)), { limitMs: 10_000 })
    // Nothing is left to be stored when it is stopped the next time.
    const last = receiver.deliveries.at(-1)
    await run.known(webhook.id, last?.id)
  }
})

t.test('a webhook that was stored and whose answer was lost is removed: nobody knows its secret', async (t) => {
  const receiver = await startReceiver(t)
  const run = await startWithWebhooks(t)
  failOnce(t, WebhookRepository.prototype, 'insert', { done: true })
  t.ok((await run.call('POST', '/webhooks', { url: receiver.url })).status >= 500)
  t.equal((await run.database('webhooks_webhooks')).length, 1)
  await eventually('it is gone', async () => (await run.database('webhooks_webhooks')).length === 0, { limitMs: 10_000 })
})

t.test('creates that wait for one whose database hangs are refused with it', async (t) => {
  const run = await startWithWebhooks(t)
  const receiver = await startReceiver(t)
  const create = async (): Promise<number> => (await run.call('POST', '/webhooks', { url: receiver.url })).status
  const hang = hanging(t, WebhookRepository.prototype, 'insert')
  t.same(await Promise.all([create(), create(), create(), create()]), [503, 503, 503, 503])
  t.equal(hang.times, 1)
  hang.end()
  t.equal(await create(), 201)
})
