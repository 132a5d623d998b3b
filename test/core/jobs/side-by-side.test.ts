import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { sideBySide } from '../../../core/jobs/side-by-side.ts'

t.test('so many at once and no more, each once, settled in the order of the items', async (t) => {
  let running = 0
  let most = 0
  const results = await sideBySide(Array.from({ length: 100 }, (_, index) => index), 7, async (item, index) => {
    t.equal(item, index)
    most = Math.max(most, ++running)
    await turn()
    running--
    if (item === 50) throw new Error('this one')
    return item * 2
  })
  t.equal(most, 7)
  t.equal(results.length, 100)
  t.same(results[99], { status: 'fulfilled', value: 198 })
  t.match(results[50], { status: 'rejected', reason: { message: 'this one' } })
  t.same(await sideBySide([], 7, async () => {}), [])
})

t.test('others have their turn while work goes on that waits for nothing', async (t) => {
  let turns = 0
  const others = setInterval(() => { turns++ }, 1)
  await sideBySide(Array.from({ length: 60 }), 4, async () => {
    const until = performance.now() + 1
    while (performance.now() < until);
  })
  clearInterval(others)
  t.ok(turns > 1, `${turns} turns`)
})
