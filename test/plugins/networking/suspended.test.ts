// The TAP of a VM that is paused for a while: closed off with its rules in place, and used again by the same VM.
import t from 'tap'
import { tapOf } from '../../../plugins/networking/names.ts'
import { repairLines } from '../../../plugins/networking/port-lines.ts'
import { createWorld, skipReason } from './world.ts'

const skip = skipReason()
const PORT = 5432
const LIMITED = { vcpus: 1, downloadBps: 10_000_000, uploadBps: 20_000_000 }

t.test('a suspended guest reaches nobody, and when it is resumed everything is as it was', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  await world.ip('-n', world.outside, 'address', 'add', '1.2.3.4/32', 'dev', 'lo')
  await (await world.agent(world.outside)).ask({ do: 'listen', protocol: 'tcp', port: PORT, answer: 'outside' })
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, LIMITED, 'none'), address)
  const call = async (): Promise<string> => await guest.ask({ do: 'call', protocol: 'tcp', host: '1.2.3.4', port: PORT, timeoutMs: 2000 })
  const isUp = async (): Promise<boolean> => (await world.in(world.namespace, 'ip', '-json', 'link', 'show', 'dev', tapOf('a'))).includes('"UP"')
  t.match(await call(), /^outside/)
  const standing = async (): Promise<string[]> => (await world.census()).filter((line) => !line.startsWith('connection: '))
  const before = await standing()

  await network.suspend('a')
  t.notOk(await isUp())
  t.notMatch(await call(), /^outside/)
  t.notOk((await world.in(world.namespace, 'conntrack', '--dump')).includes(`src=${address.ip} `), 'its connections have ended')

  t.ok(await network.resume('a'))
  t.ok(await isUp())
  t.match(await call(), /^outside/)
  t.same(await standing(), before)
  t.notOk(await network.resume('a'), 'it was not suspended')
})

t.test('a suspended guest is unplugged and plugged like any other, and one whose TAP is gone is not resumed', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('first')
  await network.plug('first', undefined, { vcpus: 1 }, 'none')
  await network.allocate('a')
  const before = await world.census()
  await network.suspend('a')
  t.notOk(await network.resume('a'), 'nothing was plugged')
  await network.plug('a', undefined, LIMITED, 'none')
  await network.suspend('a')
  await network.unplug('a')
  t.notOk(await network.resume('a'))
  t.same(await world.census(), before)
  await network.plug('a', undefined, LIMITED, 'none')
  await network.suspend('a')
  await world.in(world.namespace, 'ip', 'link', 'delete', 'dev', tapOf('a'))
  t.notOk(await network.resume('a'))
  await network.plug('a', undefined, { vcpus: 1 }, 'none')
  t.match(await world.in(world.namespace, 'ip', '-json', 'link', 'show', 'dev', tapOf('a')), /"UP"/, 'a new one is up')
})

t.test('a repair of the network leaves a TAP down that is to be down', async (t) => {
  const address = { instanceId: 'a', ip: '10.0.0.2', mac: '02:00:00:00:00:01', position: 2, spec: undefined, changing: false }
  const lines = (isDown: boolean): readonly string[] => repairLines(address, { egress: 'none', limits: {} }, { hasShaper: false, isDown, bridge: 'berth0' }).ip
  t.equal(lines(true).at(-1), `link set dev ${tapOf('a')} down`)
  t.equal(lines(false).at(-1), `link set dev ${tapOf('a')} up`)
})
