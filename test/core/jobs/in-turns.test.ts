// Long loops do not hold others up.
import t from 'tap'
import { mapInTurns } from '../../../core/jobs/in-turns.ts'

t.test('each item is mapped, in order, and a slow loop leaves turns for others', async (t) => {
  let turns = 0
  let next = setImmediate(function count () { turns += 1; next = setImmediate(count) })
  const results = await mapInTurns(Array.from({ length: 40 }, (_, index) => index), (item, index) => {
    const until = performance.now() + 2
    while (performance.now() < until);
    return `${item} ${index}`
  })
  clearImmediate(next)
  t.same(results, Array.from({ length: 40 }, (_, index) => `${index} ${index}`))
  t.ok(turns >= 5 && turns <= 40, `${turns} turns`)
})

t.test('nothing is made of nothing', async (t) => {
  t.same(await mapInTurns([], () => 1), [])
})
