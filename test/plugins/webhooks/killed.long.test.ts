// A server that is killed while it delivers: the next one goes on, and nothing is lost.
import t from 'tap'
import { skipWithout } from '../../../setup/structure/deleted.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMariadbDatabase } from '../../helpers/mariadb.ts'
import { startTestServer } from '../../helpers/server.ts'
import { skipFile } from '../../helpers/skip-file.ts'
import { startReceiver, taken } from './receiver.ts'

await skipFile(skipWithout('volumes'))
const off = Object.fromEntries(['builds', 'devices', 'egress', 'guest', 'hypervisor-qemu', 'images', 'instances', 'pushes', 'registry', 'snapshots'].map((id) => [id, { enabled: false }]))

for (const kind of ['SQLite', 'MariaDB'] as const) {
  t.test(`after kill -9 every event arrives, in order, and at most the last ones twice (${kind})`, async (t) => {
    const receiver = await startReceiver(t)
    const server = await startTestServer(t, {
      ...kind === 'SQLite' ? {} : { database: { url: await createMariadbDatabase() } },
      plugins: { ...off, webhooks: { config: { allowPrivate: ['127.0.0.1'], retryFrom: '10ms', retryAtMost: '50ms' } } }
    })
    const made: string[] = []
    const make = async (): Promise<void> => {
      const name = `volume-${made.length}`
      await server.api.call('POST', '/volumes', { name, size_gb: 1 })
      made.push(name)
    }
    await server.api.call('POST', '/webhooks', { url: receiver.url, filter: { resources: ['volume'] } })
    const created = (): string[] => receiver.deliveries.filter(({ event }) => event.type === 'volume.created').map(({ event }) => String(event.data?.['name']))
    for (let count = 0; count < 5; count++) await make()
    await eventually('they are delivered', () => created().includes(made.at(-1) ?? ''))
    // The next one is with the receiver, whose answer the server does not live to see.
    const before = receiver.deliveries.length
    receiver.answer = () => {}
    await make()
    await make()
    await eventually('the receiver has it', () => receiver.deliveries.length > before)
    await server.kill9()
    receiver.answer = taken
    await server.restart()
    await make()
    await eventually('the last one', () => created().includes(made.at(-1) ?? ''))
    t.same([...new Set(created())], made, 'all, in order of their first arrival')
    const ids = receiver.deliveries.map(({ id }) => id)
    t.ok(new Set(ids).size < ids.length, 'what was under way came again, with the same id')
    const [webhook] = JSON.parse(JSON.stringify(await server.api.call('GET', '/webhooks')))
    t.match(webhook, { status: 'active', last_error: null })
  })
}
