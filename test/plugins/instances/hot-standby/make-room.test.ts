// Who is kept without a claim goes before anybody who has one is short of memory.
import t from 'tap'
import { makeRoom, type Rivals } from '../../../../plugins/instances/hot-standby/make-room.ts'

const MIB = 2 ** 20

/** Kept VMs of so much memory each, oldest first, and why each went. */
function keeping (...sizes: number[]): { kept: Rivals['kept'], ended: string[] } {
  const left = [...sizes]
  const ended: string[] = []
  const sum = (): number => left.reduce((all, each) => all + each, 0)
  const endOldest: Rivals['kept']['endOldest'] = async (reason) => {
    const size = left.shift()
    if (size !== undefined) ended.push(`${size / MIB} ${reason}`)
    return size !== undefined
  }
  const kept: Rivals['kept'] = {
    count: () => ({ vms: left.length, memoryBytes: sum() }),
    endOldest,
    async shrinkTo (bytes, reason) { while (sum() > bytes && await endOldest(reason)); }
  }
  return { kept, ended }
}

const resourcesWith = (memoryLeft: number): Rivals['resources'] => ({ memoryLeft: async () => memoryLeft })

t.test('the oldest go until all claims and those that stay fit into the host', async (t) => {
  const { kept, ended } = keeping(256 * MIB, 128 * MIB, 64 * MIB)
  await makeRoom({ kept, resources: resourcesWith(200 * MIB) }, 0)
  t.same(ended, ['256 room'])
  await makeRoom({ kept, resources: resourcesWith(200 * MIB) }, 0)
  t.same(ended, ['256 room'])
  await makeRoom({ kept, resources: resourcesWith(0) }, 0)
  t.same(ended, ['256 room', '128 room', '64 room'])
})

t.test('they go, too, when the host\'s kernel has less than a VM is about to take', async (t) => {
  const { kept, ended } = keeping(MIB, MIB)
  await makeRoom({ kept, resources: undefined }, 0)
  await makeRoom({ kept, resources: undefined }, 2 ** 60)
  t.same(ended.filter((each) => each.endsWith('pressure')).length, 2)
})

t.test('nobody is asked when nothing is kept', async (t) => {
  await makeRoom({ kept: keeping().kept, resources: resourcesWith(NaN) }, 2 ** 60)
  t.pass('nobody was')
})
