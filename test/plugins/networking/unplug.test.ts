// A guest's TAP is taken away, whatever an earlier attempt has left of it.
import t from 'tap'
import { BRIDGE, shaperOf, tapOf } from '../../../plugins/networking/names.ts'
import { createWorld, skipReason } from './world.ts'

const LIMITED = { vcpus: 1, downloadBps: 10_000_000, uploadBps: 20_000_000 }

t.test('a guest of which nothing is left in the network is unplugged without a fault', { skip: skipReason() }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('first')
  await network.plug('first', undefined, { vcpus: 1 }, 'none')
  const { ip } = await network.allocate('a')
  const before = await world.census()
  const lines = [['link', 'delete', 'dev', tapOf('a')], ['link', 'delete', 'dev', shaperOf('a')], ['neigh', 'delete', ip, 'dev', BRIDGE]]
  for (let gone = 1; gone <= lines.length; gone++) {
    await network.plug('a', undefined, LIMITED, 'none')
    for (const line of lines.slice(0, gone)) await world.in(world.namespace, 'ip', ...line)
    await network.unplug('a')
    t.same(await world.census(), before, `${gone} of ${lines.length} were gone`)
  }
})
