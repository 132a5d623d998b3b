// Where events may be sent: to public addresses, and those that the operator has opened.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { AddressRefused } from '../../../core/library/addresses.ts'
import { createSender } from '../../../plugins/webhooks/delivery/sender.ts'
import { temporaryFolder } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createTestAuthority } from '../../proxy/helpers/authority.ts'
import { startWithWebhooks } from './app.ts'
import { startReceiver } from './receiver.ts'

t.test('nothing is sent to private addresses, under whatever name', async (t) => {
  const receiver = await startReceiver(t)
  const run = await startWithWebhooks(t, { allowPrivate: [] })
  for (const host of ['127.0.0.1', '127.1', '0x7f000001', '[::1]', '[::ffff:127.0.0.1]', '10.1.2.3', '169.254.169.254']) {
    t.match(await run.call('POST', '/webhooks', { url: `http://${host}:${receiver.port}/` }), { status: 400, body: { code: 'address_refused', message: /plugins\.webhooks\.config\.allowPrivate/ } }, host)
  }
  const { id } = await run.make({ url: `http://localhost:${receiver.port}/` })
  await run.things.make('a')
  t.match(await run.until(id, 'failing'), { last_error: { message: /^localhost:\d+ is at an address that this server does not dial/ } })
  t.equal(receiver.connections(), 0)
})

t.test('a name that means another address at the second look is not followed there', async (t) => {
  const receiver = await startReceiver(t, { answer: (response) => { response.writeHead(204, { connection: 'close' }).end() } })
  const answers = [['127.0.0.1'], undefined]
  let looks = 0
  const sender = createSender(`http://rebinding.invalid:${receiver.port}/`, {
    resolve: async (endpoint) => {
      const answer = answers[looks++]
      if (answer === undefined) throw new AddressRefused(endpoint, 'a key')
      return answer
    },
    roots: [],
    timeoutMs: 60_000,
    userAgent: 'test'
  })
  t.teardown(() => { sender.close() })
  const { signal } = new AbortController()
  t.equal(await sender.send('{}', {}, signal), undefined, 'the address that was judged is the one that is dialled: nobody else knows this name')
  t.equal(looks, 1)
  t.match(await sender.send('{}', {}, signal), { message: /does not dial/ })
  t.equal(looks, 2, 'each connection is judged')
  t.equal(receiver.deliveries.length, 1)
})

t.test('HTTPS needs a certificate of a known authority, of the receiver\'s name', async (t) => {
  const authority = createTestAuthority()
  const roots = join(await temporaryFolder(t), 'roots.pem')
  await writeFile(roots, authority.certificatePem)
  const run = await startWithWebhooks(t, { roots: [roots], allowPrivate: ['127.0.0.1', '::1'] })
  const good = await startReceiver(t, { tls: authority.issue('localhost') })
  const misnamed = await startReceiver(t, { tls: authority.issue('other.example') })
  const unknown = await startReceiver(t, { tls: createTestAuthority('Nobody').issue('localhost') })
  await run.make({ url: good.url })
  const { id: wrongName } = await run.make({ url: misnamed.url })
  const { id: wrongAuthority } = await run.make({ url: unknown.url })
  await run.things.make('a')
  await eventually('the delivery', () => good.deliveries.length === 1)
  t.match((await run.until(wrongName, 'failing')).last_error?.message, /its certificate is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/)
  t.match((await run.until(wrongAuthority, 'failing')).last_error?.message, /its certificate is not trusted/)
  t.same([...misnamed.deliveries, ...unknown.deliveries], [])
})
