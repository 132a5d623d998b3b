// Networks behind the host that guests must not see: private ones, the provider's, and metadata services. Real listeners have those addresses outside.
import t, { type Test } from 'tap'
import type { EgressMode } from '../../../plugins/networking/contract.ts'
import { holds, INTERNAL_V4, METADATA_V4, rangeList } from '../../../proxy/contract/ranges.ts'
import { ownV4 } from '../../../proxy/contract/own-addresses.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createWorld, skipReason, type Changes, type Machine, type World } from './world.ts'

const skip = skipReason()
const PUBLIC = '1.2.3.4'
/** one address of each range in which something can answer */
const INTERNAL = ['10.9.9.9', '100.64.0.9', '172.17.0.2', '192.0.0.9', '192.31.196.9', '192.52.193.9', '192.88.99.9', '192.168.7.7', '192.175.48.9', '198.18.0.9', '169.254.7.7']
/** ranges to which no host sends a packet, or no host has an address of: their refusal is the same rule */
const NOBODYS = ['0.1.2.3', '127.0.0.9', '224.0.0.9', '240.0.0.9']
const PORT = 5432
const REFUSED = ['ECONNREFUSED', 'EHOSTUNREACH', 'EACCES', 'EPERM', 'ENETUNREACH']

interface Scene { readonly world: World, guest (id: string, egress: EgressMode): Promise<Machine> }

/** The outside answers under every such address, and the host's way there is its default route. */
async function setScene (t: Test, config: Changes = {}): Promise<Scene> {
  const world = await createWorld(t)
  await world.addOutside()
  for (const address of [PUBLIC, ...INTERNAL, ...METADATA_V4]) await world.ip('-n', world.outside, 'address', 'add', `${address}/32`, 'dev', 'lo')
  const outside = await world.agent(world.outside)
  for (const protocol of ['tcp', 'udp'] as const) await outside.ask({ do: 'listen', protocol, port: PORT, answer: 'outside' })
  const host = await world.agent(world.host)
  for (const address of [...INTERNAL, ...METADATA_V4]) t.match(await host.ask({ do: 'call', protocol: 'tcp', host: address, port: PORT }), /^outside/, `${address} answers the host`)
  await host.ask({ do: 'listen', protocol: 'tcp', port: PORT, answer: 'host' })
  const network = await world.open({ uplink: 'auto', ...config })
  return {
    world,
    async guest (id, egress) {
      const address = await network.allocate(id)
      return await world.machine(await network.plug(id, undefined, { vcpus: 1 }, egress), address)
    }
  }
}

const call = async (guest: Machine, host: string, protocol: 'tcp' | 'udp' = 'tcp'): Promise<string> => await guest.ask({ do: 'call', protocol, host, port: PORT, timeoutMs: 5000 })

t.test('what is tried here is of every range in the list', async (t) => {
  for (const range of INTERNAL_V4) t.ok([...INTERNAL, ...NOBODYS].some((address) => holds(rangeList([range]), address)), range)
})

t.test('no guest reaches private networks or metadata services behind the host, in no mode', { skip }, async (t) => {
  const scene = await setScene(t)
  for (const mode of ['none', 'http_https_only', 'all'] as const) {
    const guest = await scene.guest(mode, mode)
    for (const address of [...INTERNAL, ...NOBODYS, ...METADATA_V4]) t.ok(REFUSED.includes(await call(guest, address)), `${mode}: TCP to ${address}`)
    for (const address of ['172.17.0.2', '169.254.169.254', '168.63.129.16']) t.ok(REFUSED.includes(await call(guest, address, 'udp')), `${mode}: UDP to ${address}`)
    if (mode !== 'all') t.match(await call(guest, PUBLIC), /^outside/, `${mode}: what is public is open`)
  }
})

t.test('what an operator opens is open, and nothing else: a range, never a metadata service, and the host only by its one address', { skip }, async (t) => {
  const scene = await setScene(t, { allowPrivate: ['172.17.0.0/16', '169.254.0.0/16', '192.168.7.7', '198.51.100.0/24'], deniedNetworks: ['192.168.0.0/16'] })
  const guest = await scene.guest('a', 'none')
  for (const address of ['172.17.0.2', '169.254.7.7', '192.168.7.7']) t.match(await call(guest, address), /^outside/, address)
  for (const address of ['10.9.9.9', '169.254.169.254', '169.254.170.2', '198.51.100.1']) t.ok(REFUSED.includes(await call(guest, address)), address)
  const other = await setScene(t, { allowPrivate: ['198.51.100.1/32'] })
  t.match(await call(await other.guest('b', 'http_https_only'), '198.51.100.1'), /^host/, 'the host, which is named')
})

t.test('the host is not open by an address of an interface without a carrier, as an idle bridge of containers is', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  for (const [name, address] of [['idle', '172.17.0.1/16'], ['unplugged', '172.18.0.1/16']] as const) {
    await world.ip('-n', world.host, 'link', 'add', name, 'type', 'bridge')
    await world.ip('-n', world.host, 'address', 'add', address, 'dev', name)
  }
  // Its only port goes, as with the last container.
  await world.ip('-n', world.host, 'link', 'add', 'port', 'type', 'veth', 'peer', 'name', 'peer')
  await world.ip('-n', world.host, 'link', 'set', 'port', 'master', 'idle', 'up')
  await world.ip('-n', world.host, 'link', 'set', 'idle', 'up')
  await world.ip('-n', world.host, 'link', 'delete', 'port')
  const host = await world.agent(world.host)
  await host.ask({ do: 'listen', protocol: 'tcp', port: PORT, answer: 'host' })
  for (const address of ['172.17.0.1', '172.18.0.1']) t.match(await host.ask({ do: 'call', protocol: 'tcp', host: address, port: PORT }), /^host/, `${address} answers`)
  const { pid } = world.child(world.host, ['sleep', 'infinity'])
  await eventually('the addresses of the host', async () => {
    world.hostAddresses = ownV4(`/proc/${pid ?? 0}/net`)
    return world.hostAddresses.includes('198.51.100.1')
  })
  const network = await world.open({ uplink: 'auto', allowPrivate: ['172.16.0.0/12'] })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'none'), address)
  for (const own of ['172.17.0.1', '172.18.0.1', '198.51.100.1']) t.ok(REFUSED.includes(await call(guest, own)), own)
  t.match((await network.proxyPlace()).denied, ['10.100.0.0/16', '172.17.0.1', '172.18.0.1', '198.51.100.1'])
})

t.test('a network that is closed again is closed to connections of before', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  await world.ip('-n', world.outside, 'address', 'add', '172.17.0.2/32', 'dev', 'lo')
  await (await world.agent(world.outside)).ask({ do: 'listen', protocol: 'tcp', port: PORT, answer: 'outside' })
  const network = await world.open({ uplink: 'auto', allowPrivate: ['172.17.0.0/16'] })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'none'), address)
  t.match(await guest.ask({ do: 'call', protocol: 'tcp', host: '172.17.0.2', port: PORT, keep: 'open' }), /^outside/)
  t.equal(await guest.ask({ do: 'say', kept: 'open' }), 'echo')
  await world.abandon(network)
  await world.open({ uplink: 'auto' })
  t.match(await guest.ask({ do: 'say', kept: 'open' }), /^(closed|ECONNRESET)$/)
})
