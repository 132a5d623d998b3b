// What a hostile guest may put on its wire: raw frames through a real TAP. None but its own to the gateway goes anywhere.
import t from 'tap'
import type { BridgeRoom } from '../../../plugins/networking/bridges.ts'
import type { NetworkAddress, NetworkService } from '../../../plugins/networking/contract.ts'
import { deviceMac } from '../../../plugins/networking/names.ts'
import { arp, BROADCAST, ethernet, ipHex, macHex, question, tagged, udp, udp6, type UdpFields } from './frames.ts'
import { createWorld, inEachPlace, skipReason, type Agent, type RawGuest, type World } from './world.ts'

const OUTSIDE = '198.51.100.2'
const PORT = 7777
const ANOTHER_MAC = '02:ff:ff:ff:ff:01'

interface Scene { readonly world: World, readonly network: NetworkService, readonly a: NetworkAddress, readonly b: NetworkAddress, readonly guest: RawGuest, readonly victim: RawGuest, readonly listener: Agent, readonly gateway: string }

async function setScene (t: Parameters<typeof createWorld>[0], bridgeRoom?: BridgeRoom): Promise<Scene> {
  const world = await createWorld(t, bridgeRoom)
  await world.addOutside()
  const network = await world.open({ uplink: 'auto', dns: { servers: [await world.addDns()] } })
  const [a, b] = [await network.allocate('a'), await network.allocate('b')]
  const guest = await world.raw(await network.plug('a', undefined, { vcpus: 1 }, 'none'))
  const victim = await world.raw(await network.plug('b', undefined, { vcpus: 1 }, 'none'))
  const listener = await world.agent(world.outside)
  await listener.ask({ do: 'listen', protocol: 'udp', port: PORT, answer: 'heard' })
  return { world, network, a, b, guest, victim, listener, gateway: deviceMac('host-a', 'gateway') }
}

t.test('only a guest\'s own MAC and address pass, whatever it writes on its wire', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const { a, b, guest, victim, listener, gateway } = await setScene(t, bridgeRoom)
  const word = (text: string, changes: Partial<UdpFields> = {}): Buffer => udp({ source: a.ip, destination: OUTSIDE, port: PORT, text, ...changes })
  const own = (text: string, changes: Partial<UdpFields> = {}): Buffer => ethernet({ to: gateway, from: a.mac, payload: word(text, changes) })
  guest.send(own('first'))
  t.match(await listener.ask({ do: 'heard', until: 'first' }), /198\.51\.100\.1 first/, 'an honest frame passes')
  t.ok(await guest.frame((hex) => hex.includes(Buffer.from('heard').toString('hex'))), 'and its answer comes back')

  guest.send(
    ethernet({ to: gateway, from: ANOTHER_MAC, payload: word('another MAC') }),
    ethernet({ to: gateway, from: b.mac, payload: word('the MAC of b') }),
    ethernet({ to: gateway, from: gateway, payload: word('the MAC of the gateway') }),
    own('the address of b', { source: b.ip }),
    ethernet({ to: gateway, from: b.mac, payload: word('MAC and address of b', { source: b.ip }) }),
    own('the address of the gateway', { source: a.gateway }),
    own('a free address', { source: '10.100.77.77' }),
    own('an address from outside', { source: '198.51.100.9' }),
    own('no address', { source: '0.0.0.0' }),
    own('loopback', { source: '127.0.0.1' }),
    own('broadcast as the sender', { source: '255.255.255.255' }),
    ethernet({ to: BROADCAST, from: a.mac, payload: word('to everybody') }),
    ethernet({ to: b.mac, from: a.mac, payload: word('to b by its MAC', { destination: b.ip }) }),
    tagged(own('in a VLAN'), 0x8100),
    tagged(own('in two VLANs'), 0x88a8, 0x8100),
    tagged(own('in an old VLAN in a VLAN'), 0x8100, 0x8100),
    ethernet({ to: gateway, from: a.mac, type: 0x86dd, payload: word('called IPv6') }),
    ethernet({ to: gateway, from: a.mac, type: 60, payload: word('called a length') }),
    ethernet({ to: gateway, from: a.mac, type: 0x8863, payload: word('called PPPoE') }),
    Buffer.concat([own('').subarray(0, 20)]),
    own('last')
  )
  // One wire, one order: when the last has arrived, all before it have been judged.
  const heard = (await listener.ask({ do: 'heard', until: 'last' })).split('\n')
  t.same(heard, ['198.51.100.1 first', '198.51.100.1 last'])
  t.same(victim.received.filter((hex) => hex.includes(macHex(a.mac)) || hex.includes(ipHex(a.ip))), [], 'and nothing of it reaches the other guest')
}))

t.test('a guest cannot make itself heard past the bridge\'s own door for link-local frames', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const { a, guest, gateway } = await setScene(t, bridgeRoom)
  const ask = (to: string, name: string): Buffer => ethernet({ to, from: a.mac, payload: udp({ source: a.ip, destination: a.gateway, port: 53, text: question(name) }) })
  const answer = (name: string) => (hex: string) => hex.includes(Buffer.from(name).toString('hex'))
  for (let last = 0; last < 16; last++) guest.send(ask(`01:80:c2:00:00:${last.toString(16).padStart(2, '0')}`, `door${last}`))
  guest.send(ask('01:00:5e:00:00:01', 'multicast'), ask(BROADCAST, 'broadcast'), ask(gateway, 'honest'))
  t.ok(await guest.frame(answer('honest')), 'the gateway\'s DNS answers an honest question')
  t.same(guest.received.filter((hex) => answer('door')(hex) || answer('multicast')(hex) || answer('broadcast')(hex)), [])
}))

t.test('ARP tells of nobody but its sender, and the gateway believes only what it was told by the server', { skip: skipReason() }, inEachPlace(async (t, bridgeRoom) => {
  const { world, a, b, guest, victim, gateway } = await setScene(t, bridgeRoom)
  const neighbours = async (): Promise<string[]> => (await world.ip('-n', world.namespace, 'neigh', 'show', 'dev', 'berth0')).trim().split('\n').map((line) => line.trim()).sort()
  const before = await neighbours()
  const lie = (to: string, fields: Parameters<typeof arp>[0], from = a.mac): Buffer => ethernet({ to, from, type: 0x0806, payload: arp(fields) })
  guest.send(
    lie(gateway, { operation: 2, mac: a.mac, ip: b.ip, targetIp: a.gateway }),
    lie(BROADCAST, { operation: 2, mac: a.mac, ip: a.gateway, targetIp: b.ip }),
    lie(b.mac, { operation: 2, mac: a.mac, ip: a.gateway, targetIp: b.ip }),
    lie(BROADCAST, { operation: 1, mac: a.mac, ip: b.ip, targetIp: a.gateway }),
    lie(BROADCAST, { operation: 1, mac: b.mac, ip: b.ip, targetIp: a.gateway }, b.mac),
    lie(BROADCAST, { operation: 1, mac: b.mac, ip: a.ip, targetIp: a.gateway }),
    lie(BROADCAST, { operation: 1, mac: a.mac, ip: a.ip, targetIp: b.ip }),
    lie(BROADCAST, { operation: 1, mac: a.mac, ip: a.ip, targetIp: a.gateway })
  )
  t.ok(await guest.frame((hex) => hex.slice(24, 28) === '0806' && hex.includes(macHex(gateway) + ipHex(a.gateway))), 'who asks for the gateway is told')
  t.same(victim.received, [], 'nobody else hears of it')
  t.equal(guest.received.filter((hex) => hex.slice(24, 28) === '0806').length, 1, 'one answer: to the one honest question')
  t.same(await neighbours(), before)
}))

t.test('there is no IPv6, neither for guests nor in the namespace', { skip: skipReason() }, async (t) => {
  const { world, a, guest, gateway, victim } = await setScene(t)
  t.equal(await world.ip('-n', world.namespace, '-6', 'address', 'show'), '')
  const solicitation = Buffer.concat([Buffer.from([0x60, 0, 0, 0, 0, 24, 58, 255]), Buffer.alloc(32, 0xfe), Buffer.from([135, 0]), Buffer.alloc(22)])
  guest.send(
    ethernet({ to: gateway, from: a.mac, type: 0x86dd, payload: udp6('six') }),
    ethernet({ to: '33:33:00:00:00:01', from: a.mac, type: 0x86dd, payload: solicitation }),
    ethernet({ to: gateway, from: a.mac, payload: udp({ source: a.ip, destination: a.gateway, port: 53, text: question('four') }) })
  )
  t.ok(await guest.frame((hex) => hex.includes(Buffer.from('four').toString('hex'))))
  t.same([...guest.received, ...victim.received].filter((hex) => hex.slice(24, 28) === '86dd'), [])
})

t.test('the TAP of a guest opens for its VM\'s user and for no other', { skip: skipReason() }, async (t) => {
  const { world, network } = await setScene(t)
  await network.allocate('c')
  const { tap } = await network.plug('c', 1_900_000_001, { vcpus: 1 }, 'none')
  const open = async (uid: number): Promise<string> => {
    const child = world.child(world.namespace, ['setpriv', `--reuid=${uid}`, '--regid=65534', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all', `${world.folder}/fake-guest`, tap, 'raw'])
    return await new Promise((resolve) => {
      child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim()))
      child.once('exit', () => resolve('refused'))
    })
  }
  await world.real.run('chmod', ['755', world.folder])
  t.equal(await open(1_900_000_002), 'refused')
  t.equal(await open(1_900_000_001), 'ready')
})
