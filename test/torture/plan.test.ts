// What a seed stands for: the same each time, whatever happens when it is played.
import t from 'tap'
import { planRound, type RoundPlan } from './plan.ts'

/** Every choice of a plan, as text. */
function textOf ({ clients, troubles }: RoundPlan): string {
  return JSON.stringify([clients.map((calls) => calls.map(({ afterMs, action }) => [afterMs, action.text])), troubles.map(({ atMs, forMs, fault }) => [atMs, forMs, fault.text])])
}

t.test('a seed has the same calls and faults each time, and another seed has others', async (t) => {
  for (let round = 0; round < 20; round++) {
    t.equal(textOf(planRound(7, round, true)), textOf(planRound(7, round, true)))
    t.not(textOf(planRound(7, round, true)), textOf(planRound(8, round, true)))
  }
  t.equal(planRound(7, 0, true).troubles.length, 0, 'the first round is without a fault')
})

t.test('a database that is no process does not hang', async (t) => {
  const kinds = Array.from({ length: 200 }, (_, seed) => planRound(seed, 1, false).troubles.map(({ fault }) => fault.kind)).flat()
  t.notOk(kinds.includes('database'))
  t.ok(kinds.includes('server'))
})
