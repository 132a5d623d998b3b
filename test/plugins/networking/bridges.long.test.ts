// As many guests as need two real bridges.
import t from 'tap'
import { sideBySide } from '../../../core/jobs/side-by-side.ts'
import { tapOf } from '../../../plugins/networking/names.ts'
import { createWorld, skipReason, type Machine } from './world.ts'

const GUESTS = 1100
const AT_ONCE = 16
const OUTSIDE = '198.51.100.2'
const REFUSED = ['silence', 'ECONNREFUSED', 'EHOSTUNREACH', 'EACCES', 'EPERM']

t.test('of 1,100 guests, those on the second bridge have the same reach as those on the first', { skip: skipReason(), timeout: 600_000 }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const config = { uplink: 'auto', dns: { servers: [await world.addDns()] } }
  let network = await world.open(config)
  const outside = await world.agent(world.outside)
  for (const protocol of ['tcp', 'udp'] as const) await outside.ask({ do: 'listen', protocol, port: 7000, answer: 'outside' })
  const ids = Array.from({ length: GUESTS }, (_, index) => `guest-${index}`)
  const began = performance.now()
  const results = await sideBySide(ids, AT_ONCE, async (id) => {
    await network.allocate(id)
    await network.plug(id, undefined, { vcpus: 1 }, 'none')
  })
  t.comment(`${GUESTS} plugs, ${AT_ONCE} at a time: ${((performance.now() - began) / 1000).toFixed(1)} s`)
  t.same(results.filter(({ status }) => status === 'rejected'), [])
  const proxy = await world.agent(world.namespace)
  await proxy.ask({ do: 'listen', protocol: 'tcp', port: 18_443, answer: 'proxy' })
  const links = JSON.parse(await world.ip('-n', world.namespace, '-json', 'link', 'show')) as { readonly ifname: string, readonly master?: string }[]
  const masters = new Map(links.map(({ ifname, master }) => [ifname, master]))
  const on = (bridge: string): string[] => ids.filter((id) => masters.get(tapOf(id)) === bridge)
  t.same([on('berth0').length, on('berth1').length], [960, GUESTS - 960])
  const machineOf = async (id = ''): Promise<Machine> => await world.machine({ namespace: world.namespace, tap: tapOf(id) }, await network.allocate(id))
  const guests = { first: await machineOf(on('berth0')[0]), other: await machineOf(on('berth0')[1]), second: await machineOf(on('berth1')[0]), neighbour: await machineOf(on('berth1')[1]) }
  for (const guest of Object.values(guests)) await guest.ask({ do: 'listen', protocol: 'tcp', port: 7000, answer: 'guest' })

  const reachOf = async (guest: Machine): Promise<Record<string, string>> => {
    const call = async (host: string, port = 7000, protocol: 'tcp' | 'udp' = 'tcp'): Promise<string> => await guest.ask({ do: 'call', protocol, host, port, timeoutMs: 2000 })
    const others = Object.values(guests).filter((other) => other !== guest)
    const reached = await Promise.all(others.map(async ({ address }) => REFUSED.includes(await call(address.ip)) ? 'not reached' : 'reached'))
    return {
      outside: await call(OUTSIDE),
      'outside, by UDP': await call(OUTSIDE, 7000, 'udp'),
      names: await guest.ask({ do: 'resolve', server: guest.address.gateway, name: 'example.test' }),
      'the gateway': await call(guest.address.gateway, 22),
      'other guests': reached.join(),
      called: (await proxy.ask({ do: 'call', protocol: 'tcp', host: guest.address.ip, port: 7000 })).split(' ')[0] ?? ''
    }
  }
  const wanted = { outside: 'outside 198.51.100.1', 'outside, by UDP': 'outside 198.51.100.1', names: '203.0.113.7', 'the gateway': 'ECONNREFUSED', 'other guests': 'not reached,not reached,not reached', called: 'guest' }
  t.same(await reachOf(guests.first), wanted)
  t.same(await reachOf(guests.second), wanted)

  await world.abandon(network)
  const restarted = performance.now()
  network = await world.open(config)
  t.comment(`the next server is ready after ${((performance.now() - restarted) / 1000).toFixed(1)} s`)
  for (const id of [on('berth0')[0], on('berth1')[0]]) await network.setEgress(id ?? '', 'all')
  for (const guest of [guests.first, guests.second]) {
    t.equal(await guest.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 443 }), `proxy ${guest.address.ip}`)
    t.equal(await guest.ask({ do: 'call', protocol: 'tcp', host: OUTSIDE, port: 7000 }), 'ECONNREFUSED')
  }
  const removing = performance.now()
  t.same((await sideBySide(ids, AT_ONCE, async (id) => { await network.release(id) })).filter(({ status }) => status === 'rejected'), [])
  t.comment(`${GUESTS} unplugs: ${((performance.now() - removing) / 1000).toFixed(1)} s`)
  t.same((await world.census()).filter((line) => /^(link: b[ti]|neighbour|element)/.test(line) || /^fdb: 02/.test(line)), [])
})
