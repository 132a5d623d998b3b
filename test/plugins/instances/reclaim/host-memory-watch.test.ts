// Kept VMs go while the host has little memory, one after the other, and no more of them than it takes.
import t from 'tap'
import { watchHostMemory } from '../../../../plugins/instances/reclaim/host-memory-watch.ts'
import { eventually } from '../../../helpers/eventually.ts'

t.test('one after the other is given up until a tenth of the memory is available, and nothing while it is, or before it is started', async (t) => {
  const errors: unknown[] = []
  let availableBytes = 50
  let left = 4
  const giveUpOne = async (): Promise<boolean> => {
    if (left === 0) return false
    left--
    availableBytes += 4
    return true
  }
  let looks = 0
  const watch = watchHostMemory(giveUpOne, { error: (error: unknown) => { errors.push(error) } }, async () => {
    looks++
    return { totalBytes: 1000, availableBytes }
  })
  await new Promise((resolve) => setTimeout(resolve, 1100))
  t.same([looks, left], [0, 4])
  watch.start()
  watch.start()
  t.teardown(() => { watch.stop() })
  await eventually('nothing is left, since it was not enough', async () => left === 0)
  left = 4
  availableBytes = 95
  await eventually('two were enough', async () => availableBytes === 103)
  const seen = looks
  await eventually('it looks on', async () => looks > seen)
  t.same([left, errors], [2, []])
  watch.stop()
  const last = looks
  await new Promise((resolve) => setTimeout(resolve, 1100))
  t.equal(looks, last)
})
