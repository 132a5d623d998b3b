// A build server runs a file that failed once more.
import t from 'tap'
import type { FileOutcome } from '../../../setup/test/count.ts'
import { repeatFailed, type Repeatable } from '../../../setup/test/repeat.ts'

function outcome (name: string, failed: number): FileOutcome {
  return { name, count: { passed: 1, failed, skipped: 0 }, failures: [], skips: [], durationMs: 1, said: '' }
}

t.test('a file that failed is run again by itself, the second outcome counts, and it is named', async (t) => {
  const seen: string[] = []
  const again = (failed: number, name: string): Repeatable => ({ outcome: outcome(name, 1), again: async () => outcome(name, failed) })
  const { outcomes, unsteady } = await repeatFailed([{ outcome: outcome('steady', 0), again: async () => outcome('steady', 1) }, again(0, 'lucky'), again(1, 'broken')], ({ name }) => { seen.push(name) })
  t.strictSame(outcomes.map(({ name, count }) => [name, count.failed]), [['steady', 0], ['lucky', 0], ['broken', 1]])
  t.strictSame(unsteady, ['lucky'])
  t.strictSame(seen, ['lucky', 'broken'], 'what passed is not run again')
})

t.test('what luck has no part in is not repeated, and neither is anything when many files failed', async (t) => {
  const { outcomes } = await repeatFailed([{ outcome: outcome('lint', 1) }], () => t.fail('it ran'))
  t.equal(outcomes[0]?.count.failed, 1)
  const many = Array.from({ length: 5 }, (_, index): Repeatable => ({ outcome: outcome(String(index), 1), again: async () => t.fail('it ran') as never }))
  t.equal((await repeatFailed(many, () => t.fail('it ran'))).outcomes.filter(({ count }) => count.failed > 0).length, 5)
})
