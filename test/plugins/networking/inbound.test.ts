// Which of the connections that the kernel tracks lead into a guest.
import t from 'tap'
import { inboundIn } from '../../../plugins/networking/inbound.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createWorld, skipReason } from './world.ts'

const guests = new Map([['10.1.0.5', 'web'], ['10.1.0.6', 'db']])
const read = (...lines: string[]): unknown => inboundIn(lines.join('\n'), (ip) => guests.get(ip))

t.test('a connection to a guest is inbound, also half-open and by a translated address', async (t) => {
  t.same(read('tcp      6 431999 ESTABLISHED src=10.1.0.1 dst=10.1.0.5 sport=40000 dport=80 src=10.1.0.5 dst=10.1.0.1 sport=80 dport=40000 [ASSURED] mark=0 use=1'),
    [{ instanceId: 'web', source: '10.1.0.1', sourcePort: 40000, port: 80, open: true }])
  t.match(read('tcp      6 119 SYN_SENT src=10.1.0.1 dst=10.1.0.5 sport=40001 dport=81 [UNREPLIED] src=10.1.0.5 dst=10.1.0.1 sport=81 dport=40001 mark=0 use=1'), [{ port: 81, open: true }])
  t.match(read('tcp      6 431999 ESTABLISHED src=192.0.2.9 dst=192.0.2.1 sport=5000 dport=8080 src=10.1.0.6 dst=192.0.2.9 sport=5432 dport=5000 [ASSURED] mark=0 use=1'), [{ instanceId: 'db', source: '192.0.2.9', port: 5432 }])
})

t.test('one that is over is told apart', async (t) => {
  for (const state of ['TIME_WAIT', 'CLOSE', 'LAST_ACK']) {
    t.match(read(`tcp      6 100 ${state} src=10.1.0.1 dst=10.1.0.5 sport=1 dport=80 src=10.1.0.5 dst=10.1.0.1 sport=80 dport=1 [ASSURED] mark=0 use=1`), [{ open: false }], state)
  }
  for (const state of ['SYN_RECV', 'FIN_WAIT', 'CLOSE_WAIT']) {
    t.match(read(`tcp      6 100 ${state} src=10.1.0.1 dst=10.1.0.5 sport=1 dport=80 src=10.1.0.5 dst=10.1.0.1 sport=80 dport=1 mark=0 use=1`), [{ open: true }], state)
  }
})

t.test('what a guest calls, what is nobody\'s, and what is no line is left out', async (t) => {
  t.same(read('tcp      6 431999 ESTABLISHED src=10.1.0.5 dst=192.0.2.7 sport=40000 dport=443 src=192.0.2.7 dst=198.51.100.1 sport=443 dport=40000 [ASSURED] mark=0 use=1'), [])
  t.same(read('tcp      6 10 ESTABLISHED src=10.1.0.1 dst=10.1.0.99 sport=1 dport=2 src=10.1.0.99 dst=10.1.0.1 sport=2 dport=1'), [])
  t.same(read('', 'udp      17 10 src=10.1.0.1 dst=10.1.0.5 sport=1 dport=53 src=10.1.0.5 dst=10.1.0.1 sport=53 dport=1', 'tcp', 'tcp 6 1 ESTABLISHED', 'tcp 6 1 ESTABLISHED src=10.1.0.1 src=10.1.0.5'), [])
})

t.test('the kernel tells of a call to a guest for as long as it is open, and for a while after that', { skip: skipReason() }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open({ uplink: 'none' })
  const address = await network.allocate('web')
  const guest = await world.machine(await network.plug('web', undefined, { vcpus: 1 }, 'none'), address)
  await guest.ask({ do: 'listen', protocol: 'tcp', port: 80, answer: 'web' })
  t.same(await network.inbound(), [])
  const caller = await world.agent(world.namespace)
  t.match(await caller.ask({ do: 'call', protocol: 'tcp', host: address.ip, port: 80, keep: 'open' }), /^web /)
  t.match(await network.inbound(), [{ instanceId: 'web', source: address.gateway, port: 80, open: true }])
  await caller.end()
  await eventually('the connection is over', async () => (await network.inbound()).every(({ open }) => !open))
  t.match(await network.inbound(), [{ instanceId: 'web', open: false }], 'and is still known')
})
