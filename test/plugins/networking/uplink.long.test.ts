// What the plugin does to the host: nothing without a way out, and with one just what the README says, all of which goes again.
import t, { type Test } from 'tap'
import { hostLinkOf } from '../../../plugins/networking/names.ts'
import { eventually } from '../../helpers/eventually.ts'
import { added, documentedLines, hostState, type HostState } from './host-state.ts'
import { createWorld, skipReason, type World } from './world.ts'

const skip = skipReason()

async function useAll (t: Test, world: World, uplink: string): Promise<{ during: HostState }> {
  const network = await world.open({ uplink })
  const address = await network.allocate('a')
  const machine = await world.machine(await network.plug('a', undefined, { vcpus: 1, uploadBps: 1e6, downloadBps: 1e6 }, 'none'), address)
  await machine.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.2', port: 80, timeoutMs: 3000 })
  await network.setEgress('a', 'all')
  const during = await hostState(world)
  await machine.end()
  await network.release('a')
  await network.close(true)
  t.notOk((await world.ip('netns', 'list')).includes(world.namespace), 'the namespace is gone with the server that nobody needs')
  return { during }
}

t.test('without a way out the host stays byte for byte as it was', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const before = await hostState(world)
  const { during } = await useAll(t, world, 'none')
  t.same(during, before, 'while it runs')
  t.same(await hostState(world), before, 'and afterwards')
})

t.test('with a way out the host has one device, one route, one neighbour, one rule and one setting more, and loses them again', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const before = await hostState(world)
  const { during } = await useAll(t, world, 'auto')
  const link = hostLinkOf(world.namespace)
  t.equal(added(before.links, during.links).filter((line) => /^\d+: /.test(line)).length, 1, 'one device')
  t.notOk(during.links.some((line) => line.includes(`global ${link}`)), 'which has no address')
  t.match(added(before.neighbours, during.neighbours), [new RegExp(`^10\\.100\\.0\\.1 dev ${link} lladdr \\S+ PERMANENT$`)])
  const documented = documentedLines(before, link, 'wan')
  t.same(added(before.routes, during.routes), documented.routes)
  t.same(added(before.rules, during.rules), documented.rules)
  t.same(added(before.settings, during.settings).filter((line) => !line.includes(link)), documented.settings)
  t.same(await hostState(world), before, 'and afterwards it is as it was')
})

t.test('a host that forwards already goes on to', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  await world.in(world.host, 'sysctl', '--write', 'net/ipv4/conf/wan/forwarding=1')
  await useAll(t, world, 'wan')
  t.match(await world.in(world.host, 'sysctl', 'net/ipv4/conf/wan/forwarding'), / = 1/)
})

t.test('guests of a closed network hear at once that there is no way', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'none'), address)
  t.equal(await guest.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.2', port: 80 }), 'ECONNREFUSED')
  t.match(await guest.ask({ do: 'resolve', server: address.gateway, name: 'example.test' }), /EREFUSED/)
})

t.test('an interface that is not there, and a network that the host uses itself, are refused with the field to change', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const before = await hostState(world)
  for (const [config, message] of [[{ uplink: 'eth7' }, /config\.uplink: the host has no interface eth7/], [{ uplink: 'auto', cidr: '198.51.100.0/24' }, /config\.cidr: the host reaches 198\.51\.100\.0\/24 through wan/]] as const) {
    const network = await world.open(config)
    await network.allocate('a')
    await t.rejects(network.plug('a', undefined, { vcpus: 1 }, 'none'), { code: 'network_unusable', message })
    await network.release('a')
    await network.close(true)
    await world.ip('netns', 'delete', world.namespace)
  }
  t.same(await hostState(world), before)
})

t.test('a configuration without a way out removes the one of before', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const before = await hostState(world)
  const network = await world.open({ uplink: 'auto' })
  await network.allocate('a')
  await network.plug('a', undefined, { vcpus: 1 }, 'none')
  await world.abandon(network)
  await world.open({ uplink: 'none' })
  t.same(await hostState(world), before)
  t.notOk((await world.ip('-n', world.namespace, 'link')).includes('uplink'))
})

t.test('a namespace that others use stays when the server goes', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('a')
  await network.plug('a', undefined, { vcpus: 1 }, 'none')
  const proxy = await world.agent(world.namespace)
  await network.close(true)
  t.ok((await world.ip('netns', 'list')).includes(world.namespace))
  await proxy.end()
  const next = await world.open()
  await next.close(false)
  t.notOk((await world.ip('netns', 'list')).includes(world.namespace))
})

t.test('a way out that somebody takes away, or that appears or moves later, is there again within seconds', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  await world.ip('-n', world.outside, 'address', 'add', '1.2.3.4/32', 'dev', 'lo')
  await (await world.agent(world.outside)).ask({ do: 'listen', protocol: 'tcp', port: 80, answer: 'outside' })
  await world.ip('-n', world.host, 'route', 'delete', 'default')
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'none'), address)
  const call = async (): Promise<string> => await guest.ask({ do: 'call', protocol: 'tcp', host: '1.2.3.4', port: 80, timeoutMs: 500 })
  const served = async (what: string, by: RegExp): Promise<void> => { await eventually(what, async () => by.test(await call()), { limitMs: 60_000 }) }
  t.equal(await call(), 'ECONNREFUSED')
  t.equal(network.hostSide, undefined)

  await world.ip('-n', world.host, 'route', 'add', 'default', 'via', '198.51.100.2')
  await served('a default route that came later', /^outside 198\.51\.100\.1/)
  t.match(network.hostSide, { device: 'wan' })

  await world.in(world.host, 'nft', 'flush', 'ruleset')
  await served('rules that were flushed', /^outside 198\.51\.100\.1/)

  await world.ip('-n', world.host, 'link', 'add', 'wan2', 'type', 'veth', 'peer', 'name', 'wan2', 'netns', world.outside)
  for (const [namespace, own] of [[world.host, '192.0.2.1/24'], [world.outside, '192.0.2.2/24']] as const) {
    await world.ip('-n', namespace, 'address', 'add', own, 'dev', 'wan2')
    await world.ip('-n', namespace, 'link', 'set', 'wan2', 'up')
  }
  await world.ip('-n', world.host, 'route', 'replace', 'default', 'via', '192.0.2.2')
  await served('a default route that moved', /^outside 192\.0\.2\.1/)
  t.match(network.hostSide, { device: 'wan2' })
  t.match(await world.in(world.host, 'sysctl', 'net/ipv4/conf/wan/forwarding'), / = 0/, 'the interface of before forwards as little as it did')

  await world.ip('-n', world.host, 'route', 'delete', 'default')
  await world.in(world.host, 'nft', 'flush', 'ruleset')
  await world.ip('-n', world.host, 'route', 'add', 'default', 'via', '192.0.2.2')
  await served('a default route that was away for a moment', /^outside 192\.0\.2\.1/)
})
