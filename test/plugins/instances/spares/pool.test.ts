// Spare VMs end while the host has little memory.
import t from 'tap'
import { createSparePool } from '../../../../plugins/instances/spares/pool.ts'
import type { Spare } from '../../../../plugins/instances/spares/contract.ts'
import { eventually } from '../../../helpers/eventually.ts'

/** What the pool needs of a spare VM. */
function spare (id: string, ended: string[]): Spare {
  const parts: unknown = { key: 'shape', record: { id }, isGood: true, vm: { onState: () => () => {} }, end: async () => { ended.push(id) } }
  return parts as Spare
}

t.test('while less than a tenth of the memory is available, those that have waited longest end, and no more of them than it takes', async (t) => {
  const ended: string[] = []
  let looks = 0
  const log: unknown = { debug () {}, warn () {}, error () {} }
  const pool = createSparePool(60_000, log as Parameters<typeof createSparePool>[1], async () => {
    looks++
    return await Promise.resolve({ totalBytes: 1000, availableBytes: 90 + 5 * ended.length })
  })
  t.teardown(async () => { await pool.close() })
  for (const id of ['first', 'second', 'third']) pool.put(spare(id, ended))
  await eventually('two have ended', () => ended.length === 2)
  const seen = looks
  await eventually('it looks on', () => looks > seen + 1)
  t.same(ended, ['first', 'second'])
  t.equal(pool.count('shape'), 1)
})
