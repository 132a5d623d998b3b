// Published ports whose database goes away: what was answered with an error is not published, and what is stored is served once it can be read.
import t from 'tap'
import { PortRepository } from '../../../plugins/ports/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { freePort } from '../../helpers/free-port.ts'
import { hanging } from '../../helpers/hanging.ts'
import { ask, program, startPorts } from './app.ts'

t.test('a port that was stored and whose answer was lost is taken back, and its place is free', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  await makeGuest('web')
  const wish = { instance_port: 80, host_port: await freePort('127.0.0.1') }
  failOnce(t, PortRepository.prototype, 'insert', { done: true })
  t.ok((await call('POST', '/instances/web/ports', wish)).status >= 500)
  t.equal((await call('GET', '/ports')).text, '[]')
  await eventually('its place is free', async () => (await call('POST', '/instances/web/ports', wish)).status === 201, { limitMs: 30_000 })
})

t.test('a server that ends before it has taken such a port back is followed by one that does not serve it', async (t) => {
  const first = await startPorts(t)
  await first.makeGuest('web')
  failOnce(t, PortRepository.prototype, 'insert', { done: true })
  t.ok((await first.call('POST', '/instances/web/ports', { instance_port: 80 })).status >= 500)
  await first.app.stop()
  const second = await startPorts(t, { host: first.host, dataDir: first.dataDir })
  t.equal((await second.call('GET', '/ports')).text, '[]')
})

t.test('ports that could not be read as the server started are served once they can be, but for those of instances that are gone by then', async (t) => {
  const first = await startPorts(t)
  const { host } = first
  const { id, ip } = await first.makeGuest('web')
  const { port } = await program(t, ip)
  const { body } = await first.call('POST', '/instances/web/ports', { instance_port: port })
  await first.make('gone', { ports: [{ instance_port: 80 }] })
  await first.app.stop()
  host.network?.openings.clear()
  failOnce(t, PortRepository.prototype, 'all', { done: false })
  const second = await startPorts(t, { host, dataDir: first.dataDir })
  t.match(await second.call('DELETE', '/instances/gone'), { status: 204 })
  await eventually('its port', async () => (await second.call('GET', '/ports')).text.includes(String(body['id'])), { limitMs: 30_000 })
  t.equal(JSON.parse((await second.call('GET', '/ports')).text).length, 1)
  t.equal(await ask(Number(body['host_port']), 'here'), 'HERE')
  t.same(host.network?.openings.get(id), [{ protocol: 'tcp', port }])
})

t.test('a port is published beside those that could not be read as the server started', async (t) => {
  const first = await startPorts(t)
  await first.makeGuest('web')
  const { body } = await first.call('POST', '/instances/web/ports', { instance_port: 80 })
  await first.app.stop()
  failOnce(t, PortRepository.prototype, 'all', { done: false })
  const second = await startPorts(t, { host: first.host, dataDir: first.dataDir })
  t.match(await second.call('POST', '/instances/web/ports', { instance_port: 81, host_port: body['host_port'] }), { status: 409, body: { code: 'port_in_use' } })
  t.match(await second.call('POST', '/instances/web/ports', { instance_port: 81 }), { status: 201 })
  t.match(JSON.parse((await second.call('GET', '/ports')).text), [{ id: body['id'], way: 'relayed' }, { instance_port: 81 }])
})

t.test('ports that are published behind one whose database hangs are refused with it', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  const names = ['one', 'two', 'three', 'four']
  for (const name of names) await makeGuest(name)
  const publish = async (name: string): Promise<number> => (await call('POST', `/instances/${name}/ports`, { instance_port: 80 })).status
  const hang = hanging(t, PortRepository.prototype, 'insert')
  t.same(await Promise.all(names.map(publish)), [503, 503, 503, 503])
  t.equal(hang.times, 1)
  hang.end()
  t.equal(await publish('one'), 201)
})
