import t from 'tap'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'

t.test('what succeeds is not seen to later', async (t) => {
  t.equal(await nowOrLater(async () => 7, () => { t.fail('it was done') }), 7)
})

t.test('what fails is seen to later, and the caller is told all the same', async (t) => {
  let begun = 0
  await t.rejects(nowOrLater(async () => { throw new Error('away') }, () => { begun++ }), /away/)
  t.equal(begun, 1)
})
