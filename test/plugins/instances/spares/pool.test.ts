// When spare VMs end that nobody takes.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createSparePool } from '../../../../plugins/instances/spares/pool.ts'
import type { Spare } from '../../../../plugins/instances/spares/contract.ts'
import { eventually } from '../../../helpers/eventually.ts'

/** What the pool needs of a spare VM. */
function spare (id: string, ended: string[]): Spare {
  const parts: unknown = { key: 'shape', record: { id }, isGood: true, vm: { onState: () => () => {} }, end: async () => { ended.push(id) } }
  return parts as Spare
}

const log: unknown = { debug () {}, warn () {}, error () {} }
const poolOf = (idleMs: number, read: Parameters<typeof createSparePool>[2]) => createSparePool(idleMs, log as Parameters<typeof createSparePool>[1], read)

t.test('one that may wait for months does not end at once', async (t) => {
  const ended: string[] = []
  const pool = poolOf(365 * 86_400_000, async () => await Promise.resolve({ totalBytes: 1000, availableBytes: 900 }))
  t.teardown(async () => { await pool.close() })
  pool.put(spare('first', ended))
  await sleep(100)
  t.same([ended, pool.size], [[], 1])
})

t.test('while less than a tenth of the memory is available, those that have waited longest end, and no more of them than it takes', async (t) => {
  const ended: string[] = []
  let looks = 0
  const pool = poolOf(60_000, async () => {
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
