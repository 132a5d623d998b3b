// Each fuzz target runs the seeds that failed once and a few others; `npm run fuzz -- NAME --minutes N` goes on from there.
import t from 'tap'
import { Random } from './fuzz.ts'
import { runFew } from './helpers/few.ts'

t.test('numbers follow from their seed', async (t) => {
  const [first, second] = [new Random(7), new Random(7)]
  for (let count = 0; count < 100; count++) t.equal(first.below(1_000), second.below(1_000))
  t.not(new Random(8).below(1_000_000), new Random(7).below(1_000_000))
})

await runFew(t, { areSlow: false, few: 40 })
