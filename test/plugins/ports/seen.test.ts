// What operators and other programs see of published ports: events of each that comes and goes, and figures.
import { connect } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { plugin as events } from '../../../plugins/events/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { eventsUntil } from '../events/reader.ts'
import { ask, program, startPorts } from './app.ts'

t.test('a port that is published, and one that goes, is an event, also of those that come and go with an instance', async (t) => {
  const { app, call, make } = await startPorts(t, { plugins: [events], listen: true })
  const id = await make('web', { ports: [{ instance_port: 80 }] })
  const { body } = await call('POST', '/instances/web/ports', { instance_port: 53, protocol: 'udp' })
  t.match(JSON.parse((await call('GET', '/events/snapshot?resource=port')).text).resources, [{ resource: 'port', instance_id: id, instance_port: 80 }, { id: body['id'], instance_port: 53 }])
  const after = String((await call('GET', '/events/snapshot?resource=port')).body['id'])
  await call('DELETE', `/instances/web/ports/${String(body['id'])}`)
  await call('POST', '/instances/web/ports', { instance_port: 81 })
  await call('DELETE', '/instances/web')
  let gone = 0
  const seen = await eventsUntil(`${app.address()}/events?resource=port`, ADMIN_KEY, after, ({ type }) => type === 'port.deleted' && ++gone === 3)
  t.match(seen.filter(({ type }) => type.startsWith('port.')), [
    { type: 'port.deleted', data: { id: body['id'], name: `127.0.0.1:${String(body['host_port'])}/udp`, protocol: 'udp', instance_id: id } },
    { type: 'port.created', data: { resource: 'port', instance_port: 81, status: 'active' } },
    { type: 'port.deleted' }, { type: 'port.deleted' }
  ])
})

t.test('figures tell how many ports there are, how they lead to instances, and who came to the server itself', async (t) => {
  const lines: Record<string, unknown>[] = []
  const { call, makeGuest } = await startPorts(t, { listen: true, lines, ports: { connections: 1 } })
  const { ip } = await makeGuest('web')
  const { port } = await program(t, ip)
  const hostPort = Number((await call('POST', '/instances/web/ports', { instance_port: port })).body['host_port'])
  await ask(hostPort, 'relayed')
  await call('POST', '/instances/web/standby')
  await ask(hostPort, 'woken')
  const held = connect({ host: '127.0.0.1', port: hostPort })
  held.write('held')
  await once(held, 'data')
  await t.rejects(ask(hostPort, 'one too many'), { code: 'ECONNRESET' })
  const metricsPort = Number(lines.find(({ msg }) => msg === 'metrics served')?.['port'])
  const figures = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const text = await figures()
  for (const line of ['berth_ports{way="relayed"} 1', 'berth_ports{way="direct"} 0', 'berth_ports_connections 1', 'berth_ports_connections_total{outcome="relayed"} 2', 'berth_ports_connections_total{outcome="woken"} 1', 'berth_ports_connections_total{outcome="full"} 1']) {
    t.ok(text.split('\n').includes(line), line)
  }
  held.destroy()
  await eventually('nobody', async () => (await figures()).includes('berth_ports_connections 0\n'))
  await call('PATCH', '/instances/web', { wake: 'never' })
  await call('POST', '/instances/web/standby')
  await t.rejects(ask(hostPort, 'refused'), { code: 'ECONNRESET' })
  t.match(await figures(), /berth_ports_connections_total\{outcome="refused"\} 1\n/)
})
