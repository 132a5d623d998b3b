// Answers that wait for a repeat of their request: how long, and how many.
import t from 'tap'
import { Attempts, type Attempt } from '../../../core/http/attempts.ts'

/** An attempt that was given up, with an answer of so many bytes. */
function unheard (attempts: Attempts, id: string, bytes = 1, status = 200): Attempt {
  const attempt = attempts.begin(id)
  attempts.giveUp(attempt)
  attempts.answer(attempt, { status, headers: {}, body: 'x'.repeat(bytes) })
  return attempt
}

t.test('an answer that nobody comes for is kept for a time', async (t) => {
  const attempts = new Attempts({ keepMs: 50 })
  unheard(attempts, 'a')
  const taken = attempts.take('a')
  t.ok(taken)
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  if (taken !== undefined) attempts.giveUp(taken)
  t.equal(attempts.take('a'), taken, 'one that somebody has does not end')
  if (taken !== undefined) attempts.giveUp(taken)
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  t.equal(attempts.take('a'), undefined)
})

t.test('so many answers are kept, and so many bytes of them, the newest', async (t) => {
  const few = new Attempts({ most: 2 })
  for (const id of ['a', 'b', 'c']) unheard(few, id)
  t.same(['a', 'b', 'c'].map((id) => few.take(id) !== undefined), [false, true, true])
  const small = new Attempts({ mostBytes: 100 })
  for (const [id, bytes] of [['a', 60], ['b', 40], ['c', 10]] as const) unheard(small, id, bytes)
  t.same(['a', 'b', 'c'].map((id) => small.take(id) !== undefined), [false, true, true])
  unheard(small, 'd', 101)
  t.equal(small.take('d'), undefined, 'one that is larger than that is not kept')
  const [first, second] = [unheard(small, 'e', 50), unheard(small, 'f', 50)]
  t.ok(small.take('e') === first && small.take('f') === second, 'what was taken does not count')
  small.clear()
})

t.test('what is not kept is over for those that wait for it', async (t) => {
  const attempts = new Attempts()
  const attempt = attempts.begin('a')
  attempts.giveUp(attempt)
  t.equal(attempts.take('a'), attempt)
  t.equal(attempts.take('a'), undefined, 'by one at a time')
  attempts.clear()
  t.equal(await attempt.answered, undefined)
  for (const status of [408, 429, 500, 502, 503]) {
    unheard(attempts, 'a', 1, status)
    t.equal(attempts.take('a'), undefined, String(status))
  }
  for (const status of [204, 404, 409, 501]) {
    const kept = unheard(attempts, 'a', 1, status)
    t.equal(attempts.take('a'), kept, String(status))
    attempts.end(kept)
  }
})
