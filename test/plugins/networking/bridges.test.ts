// More guests than one bridge has ports for: they are in one network all the same.
import t from 'tap'
import { tapOf } from '../../../plugins/networking/names.ts'
import type { Networking } from '../../../plugins/networking/service.ts'
import { createWorld, skipReason, type World } from './world.ts'

const skip = skipReason()
/** room for seven */
const SMALL = { first: 1, further: 2, bridges: 3 }

async function plug (network: Networking, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await network.allocate(id)
    await network.plug(id, undefined, { vcpus: 1 }, 'none')
  }
}

/** The bridges of guests, in their order. */
async function bridgesOf (world: World, ...ids: readonly string[]): Promise<(string | undefined)[]> {
  const links = JSON.parse(await world.ip('-n', world.namespace, '-json', 'link', 'show')) as { readonly ifname: string, readonly master?: string }[]
  return ids.map((id) => links.find(({ ifname }) => ifname === tapOf(id))?.master)
}

t.test('further bridges are made one after the other, ports that are free again are used first, and what is more than all of them is refused', { skip }, async (t) => {
  const world = await createWorld(t, SMALL)
  const network = await world.open()
  await plug(network, 'a')
  t.notMatch(await world.census(), [/berth1/], 'nothing is made ahead')
  await plug(network, 'b', 'c', 'd', 'e', 'f', 'g')
  t.same(await bridgesOf(world, 'a', 'b', 'c', 'd', 'e', 'f', 'g'), ['berth0', 'berth1', 'berth1', 'berth2', 'berth2', 'berth3', 'berth3'])
  await t.rejects(plug(network, 'h'), { code: 'insufficient_resources', message: 'the network of this host is full: its bridges hold 7 running instances' })
  await network.unplug('c')
  await network.unplug('a')
  await plug(network, 'h', 'i')
  t.same(await bridgesOf(world, 'h', 'i'), ['berth0', 'berth1'])
  await plug(network, 'b')
  t.same(await bridgesOf(world, 'b'), ['berth1'], 'another plug of the same guest')
})

t.test('guests on further bridges leave nothing of theirs behind', { skip }, async (t) => {
  const world = await createWorld(t, SMALL)
  const network = await world.open()
  await plug(network, 'a', 'b', 'c', 'd')
  for (const id of ['b', 'c', 'd']) await network.unplug(id)
  const before = await world.census()
  await plug(network, 'b', 'c', 'd')
  t.not((await world.census()).length, before.length)
  for (const id of ['d', 'b', 'c']) await network.release(id)
  t.same(await world.census(), before)
})

t.test('plugs at the same time make each bridge once', { skip }, async (t) => {
  const world = await createWorld(t, { first: 2, further: 10, bridges: 3 })
  const network = await world.open()
  const ids = Array.from({ length: 30 }, (_, index) => `guest-${index}`)
  await Promise.all(ids.map(async (id) => { await plug(network, id) }))
  const bridges = await bridgesOf(world, ...ids)
  t.same(['berth0', 'berth1', 'berth2', 'berth3'].map((bridge) => bridges.filter((each) => each === bridge).length), [2, 10, 10, 8])
})

t.test('the next server finds guests where they are, and repairs links between bridges', { skip }, async (t) => {
  const world = await createWorld(t, SMALL)
  let network = await world.open()
  await plug(network, 'a', 'b', 'c', 'd')
  const address = await network.allocate('d')
  const guest = await world.machine({ namespace: world.namespace, tap: tapOf('d') }, address)
  const before = await world.census()
  const places = await bridgesOf(world, 'a', 'b', 'c', 'd')
  const asked = async (): Promise<string> => await guest.ask({ do: 'call', protocol: 'tcp', host: address.gateway, port: 1, timeoutMs: 3000 })
  t.equal(await asked(), 'ECONNREFUSED', 'the gateway is there')
  await world.abandon(network)
  network = await world.open()
  t.same(await bridgesOf(world, 'a', 'b', 'c', 'd'), places)
  t.same(await world.census(), before, 'nothing had to be changed')
  await world.abandon(network)
  await world.in(world.namespace, 'bridge', 'fdb', 'replace', '02:00:00:00:00:99', 'dev', 'down-berth1', 'master', 'static')
  await world.ip('-n', world.namespace, 'link', 'del', 'up-berth2')
  await world.ip('-n', world.namespace, 'link', 'set', tapOf('b'), 'nomaster')
  network = await world.open()
  t.same((await world.census()).map((line) => line.replace(/(up|down)-(berth\d)@.*/, '$1-$2')), before)
  t.equal(await asked(), 'ECONNREFUSED', 'and again')
  await plug(network, 'e', 'f')
  t.same(await bridgesOf(world, 'e', 'f'), ['berth2', 'berth3'])
})
