import t from 'tap'
import { lookup } from '../../../core/http/lookup.ts'

const items = [{ id: 'abc1', name: 'web' }, { id: 'abd2', name: 'abc1' }, { id: 'xyz3', name: null }, { id: 'yyy4', name: 'twin' }, { id: 'yyz5', name: 'twin' }]
const all = { what: 'instance', byName: true } as const

t.test('an id wins over a name, a name over the beginning of an id', async (t) => {
  for (const things of [items, new Map(items.map((item) => [item.id, item]))]) {
    t.equal(lookup(things, 'abc1', all).id, 'abc1')
    t.equal(lookup(things, 'web', all).id, 'abc1')
    t.equal(lookup(things, 'x', all).id, 'xyz3')
    t.equal(lookup(things, 'abd', all).id, 'abd2')
  }
})

t.test('what fits several things is refused, what fits none is not found', async (t) => {
  for (const ref of ['ab', 'twin', 'yy']) t.throws(() => lookup(items, ref, all), { code: 'ambiguous', statusCode: 409 })
  for (const ref of ['none', '', 'null']) t.throws(() => lookup(items, ref, all), { code: 'not_found', message: `instance ${ref} does not exist` })
  t.throws(() => lookup(items, 'web', { what: 'snapshot' }), { code: 'not_found' })
})
