// What each mode lets out, with real connections between guests, the gateway and an outside.
import t, { type Test } from 'tap'
import type { BridgeRoom } from '../../../plugins/networking/bridges.ts'
import type { EgressMode } from '../../../plugins/networking/contract.ts'
import type { Networking } from '../../../plugins/networking/service.ts'
import { createWorld, inEachPlace, skipReason, type Agent, type Machine, type World } from './world.ts'

const OUTSIDE = '198.51.100.2'
/** whether it has heard of the reset already when it speaks */
const ENDED = /^(closed|ECONNRESET)$/
const REFUSED = ['ECONNREFUSED', 'EHOSTUNREACH', 'EACCES', 'EPERM']

interface Scene { readonly world: World, readonly network: Networking, readonly outside: Agent, readonly proxy: Agent }

/** Listeners outside on every port that the tests call, and in the namespace the proxy's ports. */
async function setScene (t: Test, { connectionsPerGuest = 1000, bridgeRoom }: { readonly connectionsPerGuest?: number, readonly bridgeRoom?: BridgeRoom | undefined } = {}): Promise<Scene> {
  const world = await createWorld(t, bridgeRoom)
  await world.addOutside()
  const network = await world.open({ uplink: 'auto', connectionsPerGuest, dns: { servers: [await world.addDns()] } })
  const outside = await world.agent(world.outside)
  for (const port of [22, 80, 443, 853, 8443]) await outside.ask({ do: 'listen', protocol: 'tcp', port, answer: 'outside' })
  for (const port of [123, 443, 5353]) await outside.ask({ do: 'listen', protocol: 'udp', port, answer: 'outside' })
  await network.allocate('first')
  await network.plug('first', undefined, { vcpus: 1 }, 'none')
  const proxy = await world.agent(world.namespace)
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_080, answer: 'proxy for 80' })
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_443, answer: 'proxy for 443' })
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_053, answer: 'names' })
  await proxy.ask({ do: 'listen', protocol: 'udp', port: 18_053, answer: 'names' })
  return { world, network, outside, proxy }
}

async function addGuest ({ world, network }: Scene, id: string, egress: EgressMode): Promise<Machine> {
  const address = await network.allocate(id)
  return await world.machine(await network.plug(id, undefined, { vcpus: 1 }, egress), address)
}

const tcp = async (from: Agent, port: number, host = OUTSIDE): Promise<string> => await from.ask({ do: 'call', protocol: 'tcp', host, port })
const udp = async (from: Agent, port: number, host = OUTSIDE): Promise<string> => await from.ask({ do: 'call', protocol: 'udp', host, port })

t.test('mode none: everything goes directly out, under the host\'s address', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const scene = await setScene(t, { bridgeRoom })
  const guest = await addGuest(scene, 'a', 'none')
  for (const port of [22, 80, 443, 853, 8443]) t.equal(await tcp(guest, port), 'outside 198.51.100.1', `TCP ${port}`)
  for (const port of [123, 443, 5353]) t.equal(await udp(guest, port), 'outside 198.51.100.1', `UDP ${port}`)
  t.equal(await guest.ask({ do: 'resolve', server: guest.address.gateway, name: 'example.test' }), '203.0.113.7', 'the gateway answers for DNS')
  for (const port of [18_080, 18_443, 18_053]) t.ok(REFUSED.includes(await tcp(guest, port, guest.address.gateway)), `the proxy's port ${port} is not for it`)
  t.ok(REFUSED.includes(await udp(guest, 18_053, guest.address.gateway)))
}))

t.test('mode all: 80 and 443 go to the proxy, names to its DNS, and nothing else anywhere', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const scene = await setScene(t, { bridgeRoom })
  const guest = await addGuest(scene, 'a', 'all')
  const { ip, gateway } = guest.address
  for (const host of [OUTSIDE, '192.0.2.1', '169.254.169.254']) {
    t.equal(await tcp(guest, 80, host), `proxy for 80 ${ip}`, `TCP 80 of ${host}`)
    t.equal(await tcp(guest, 443, host), `proxy for 443 ${ip}`, `TCP 443 of ${host}`)
  }
  for (const port of [22, 853, 8443]) t.equal(await tcp(guest, port), 'ECONNREFUSED', `TCP ${port} is refused at once`)
  for (const port of [123, 443, 5353]) t.ok(REFUSED.includes(await udp(guest, port)), `UDP ${port} is refused at once: no QUIC, and no tunnel`)
  for (const host of [gateway, OUTSIDE, '192.0.2.53']) {
    t.equal(await udp(guest, 53, host), `names ${ip}`, `UDP 53 of ${host}`)
    t.equal(await tcp(guest, 53, host), `names ${ip}`, `TCP 53 of ${host}`)
  }
  t.ok(REFUSED.includes(await tcp(guest, 18_080, gateway)), 'the proxy is reached by the redirect alone')
  await t.rejects(scene.world.in(guest.namespace, 'ping', '-c1', '-W2', OUTSIDE), 'no ICMP')
}))

t.test('mode http_https_only: 80 and 443 go to the proxy, QUIC nowhere, the rest directly out', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t)
  const guest = await addGuest(scene, 'a', 'http_https_only')
  t.equal(await tcp(guest, 80), `proxy for 80 ${guest.address.ip}`)
  t.equal(await tcp(guest, 443), `proxy for 443 ${guest.address.ip}`)
  for (const port of [22, 853, 8443]) t.equal(await tcp(guest, port), 'outside 198.51.100.1', `TCP ${port}`)
  for (const port of [123, 5353]) t.equal(await udp(guest, port), 'outside 198.51.100.1', `UDP ${port}`)
  t.ok(REFUSED.includes(await udp(guest, 443)), 'UDP 443 is refused at once')
  t.equal(await guest.ask({ do: 'resolve', server: guest.address.gateway, name: 'example.test' }), '203.0.113.7')
})

t.test('further ports go to the proxy in both modes, over TCP alone, also with the next server, until somebody says otherwise', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t)
  const { network, proxy, world } = scene
  const [all, web, direct] = [await addGuest(scene, 'a', 'all'), await addGuest(scene, 'b', 'http_https_only'), await addGuest(scene, 'c', 'none')]
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_500, answer: 'proxy for 8080' })
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_501, answer: 'proxy for 8443' })
  const holds = async (name: string): Promise<void> => {
    for (const guest of [all, web]) for (const port of [80, 443, 8080, 8443]) t.equal(await tcp(guest, port), `proxy for ${port} ${guest.address.ip}`, `${name}: ${port}`)
    for (const guest of [all, web]) t.ok(REFUSED.includes(await udp(guest, 8443)), `${name}: no QUIC`)
    t.equal(await tcp(all, 22), 'ECONNREFUSED')
    t.equal(await tcp(web, 22), 'outside 198.51.100.1')
    t.equal(await tcp(direct, 8443), 'outside 198.51.100.1')
  }
  t.equal(await tcp(web, 8443), 'outside 198.51.100.1')
  await network.mediate({ http: [80, 8080], https: [8443, 443] })
  t.same((await network.proxyPlace()).listeners, [{ kind: 'http', meant: 80, port: 18_080 }, { kind: 'http', meant: 8080, port: 18_500 }, { kind: 'https', meant: 8443, port: 18_501 }, { kind: 'https', meant: 443, port: 18_443 }])
  await holds('at once')
  t.ok(REFUSED.includes(await tcp(web, 18_501, web.address.gateway)), 'the proxy is reached by the redirect alone')
  await world.abandon(network)
  const next = await world.open({ uplink: 'auto', dns: { servers: [await world.addDns()] } })
  await holds('before the next server says which')
  await next.mediate({ http: [80], https: [443] })
  t.equal(await tcp(web, 8443), 'outside 198.51.100.1')
  t.equal(await tcp(all, 8443), 'ECONNREFUSED')
  t.equal(await tcp(all, 443), `proxy for 443 ${all.address.ip}`)
})

t.test('without the proxy there is no way out, whoever else is gone', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t)
  const [all, web] = [await addGuest(scene, 'a', 'all'), await addGuest(scene, 'b', 'http_https_only')]
  await scene.proxy.end()
  for (const guest of [all, web]) for (const port of [80, 443]) t.equal(await tcp(guest, port), 'ECONNREFUSED', `TCP ${port}`)
  t.ok(REFUSED.includes(await udp(all, 53)), 'no names either')
  await scene.world.in(scene.world.namespace, 'nft', 'flush', 'chain', 'inet', 'berth', 'redirecting')
  for (const guest of [all, web]) for (const port of [80, 443]) t.equal(await tcp(guest, port), 'ECONNREFUSED', `not even without the redirect: TCP ${port}`)
})

t.test('guests do not reach each other, the gateway\'s other ports, the host, or denied networks', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const scene = await setScene(t, { bridgeRoom })
  const { world } = scene
  const [a, b] = [await addGuest(scene, 'a', 'none'), await addGuest(scene, 'b', 'none')]
  await b.ask({ do: 'listen', protocol: 'tcp', port: 7000, answer: 'b' })
  t.ok(['silence', ...REFUSED].includes(await a.ask({ do: 'call', protocol: 'tcp', host: b.address.ip, port: 7000, timeoutMs: 3000 })), 'another guest')
  // also when it sends through the gateway on purpose
  await world.ip('-n', a.namespace, 'route', 'add', `${b.address.ip}/32`, 'via', a.address.gateway)
  t.ok(REFUSED.includes(await tcp(a, 7000, b.address.ip)), 'another guest through the gateway')
  const host = await world.agent(world.host)
  await host.ask({ do: 'listen', protocol: 'tcp', port: 8080, answer: 'API' })
  t.equal(await tcp(scene.outside, 8080, '198.51.100.1'), 'API 198.51.100.2')
  t.ok(REFUSED.includes(await tcp(a, 8080, '198.51.100.1')), 'the host')
  t.ok(REFUSED.includes(await tcp(a, 80, '169.254.169.254')), 'the metadata service')
  const inside = await world.agent(world.namespace)
  await inside.ask({ do: 'listen', protocol: 'tcp', port: 9999, answer: 'x' })
  t.ok(REFUSED.includes(await tcp(a, 9999, a.address.gateway)), 'the gateway')
  await world.ip('-n', world.outside, 'route', 'add', '10.100.0.0/16', 'via', '198.51.100.1')
  const caller = await world.agent(world.outside)
  t.equal(await caller.ask({ do: 'call', protocol: 'tcp', host: a.address.ip, port: 7000, timeoutMs: 500 }), 'silence', 'nobody outside reaches a guest')
}))

t.test('a change of mode holds at once, also for connections that are open', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const scene = await setScene(t, { bridgeRoom })
  const guest = await addGuest(scene, 'a', 'none')
  const other = await addGuest(scene, 'b', 'none')
  for (const from of [guest, other]) t.equal(await from.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 8443, keep: 'open' }), 'outside 198.51.100.1')
  t.equal(await guest.ask({ do: 'say', kept: 'open' }), 'echo')
  await scene.network.setEgress('a', 'all')
  t.match(await guest.ask({ do: 'say', kept: 'open' }), ENDED, 'the open one is reset')
  t.equal(await other.ask({ do: 'say', kept: 'open' }), 'echo', 'another guest\'s is not')
  t.equal(await tcp(guest, 80), `proxy for 80 ${guest.address.ip}`)
  t.equal(await tcp(guest, 8443), 'ECONNREFUSED')
  t.equal(await guest.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 443, keep: 'proxied' }), `proxy for 443 ${guest.address.ip}`)
  await scene.network.setEgress('a', 'none')
  t.match(await guest.ask({ do: 'say', kept: 'proxied' }), ENDED)
  t.equal(await tcp(guest, 443), 'outside 198.51.100.1')
}))

t.test('a guest that is unplugged loses its connections; plugged again it has none of before', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t)
  const { world, network } = scene
  const guest = await addGuest(scene, 'a', 'none')
  const { ip } = guest.address
  await guest.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 8443, keep: 'open' })
  const tracked = async (): Promise<number> => (await world.in(world.namespace, 'conntrack', '--dump')).split('\n').filter((line) => line.includes(`=${ip} `)).length
  t.equal(await tracked(), 1)
  await network.unplug('a')
  t.equal(await tracked(), 0)
  await guest.end()
  const again = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'http_https_only'), guest.address)
  t.equal(await tcp(again, 80), `proxy for 80 ${ip}`)
  t.equal(await tcp(again, 22), 'outside 198.51.100.1')
})

t.test('one guest cannot use up the host\'s table of connections', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t, { connectionsPerGuest: 16 })
  const [greedy, modest] = [await addGuest(scene, 'a', 'none'), await addGuest(scene, 'b', 'none')]
  const answers: string[] = []
  for (let at = 0; at < 20; at++) answers.push(await greedy.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 8443, keep: `c${at}` }))
  t.equal(answers.filter((answer) => answer.startsWith('outside')).length, 16)
  t.equal(answers.at(-1), 'ECONNREFUSED')
  t.match(await tcp(modest, 8443), /^outside/)
})

t.test('a VMM that a guest has taken over gets nothing of the namespace but its TAP', { skip: skipReason() }, async (t) => {
  const scene = await setScene(t)
  const { world, network } = scene
  await network.allocate('a')
  await network.plug('a', 65_534, { vcpus: 1 }, 'all')
  const call = async (host: string, port: number): Promise<string> => await world.in(world.namespace, 'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, '-e', `
    require('net').connect(${port}, '${host}').once('data', (text) => { console.log(String(text)); process.exit() }).once('error', (error) => { console.log(error.code); process.exit() })
    setTimeout(() => { console.log('silence'); process.exit() }, 1000)`)
  for (const [host, port] of [[OUTSIDE, 8443], ['10.100.0.1', 18_080], ['127.0.0.1', 18_080]] as const) t.match(await call(host, port), /^(silence|EPERM)/, `${host}:${port}`)
  await network.unplug('a')
  t.match(await call('127.0.0.1', 18_080), /^proxy/, 'it is the user of a VM that counts')
})
