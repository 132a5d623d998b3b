// Works in a line, of which one finds the database away.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { DatabaseUnavailable } from '../../../core/db/deadline.ts'
import { createLine } from '../../../core/db/line.ts'

const LATE_MS = 1200

t.test('works run one after the other in the order in which they came, whatever becomes of those before', async (t) => {
  const inLine = createLine()
  const seen: string[] = []
  const work = (name: string) => async (): Promise<string> => {
    seen.push(`${name} begins`)
    await delay(10)
    seen.push(`${name} ends`)
    if (name === 'b') throw new Error('b is wrong')
    return name
  }
  const [a, b, c] = await Promise.allSettled(['a', 'b', 'c'].map(async (name) => await inLine(work(name))))
  t.match([a, b, c], [{ value: 'a' }, { reason: { message: 'b is wrong' } }, { value: 'c' }])
  t.same(seen, ['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
})

t.test('a work that finds the database away late refuses those that have waited, and none that came later', async (t) => {
  const inLine = createLine()
  const away = inLine(async () => {
    await delay(LATE_MS)
    throw DatabaseUnavailable()
  })
  const waited = ['x', 'y'].map(async (name) => await inLine(async () => name))
  const late = delay(LATE_MS / 2).then(async () => await inLine(async () => 'late'))
  const refused = { status: 'rejected', reason: { code: 'database_unavailable' } }
  t.match(await Promise.allSettled([away, ...waited, late]), [refused, refused, refused, { value: 'late' }])
  t.equal(await inLine(async () => 'next'), 'next')
})

t.test('a connection that is lost at once, or a work that fails for another reason, refuses nobody else', async (t) => {
  const inLine = createLine()
  const lost = inLine(async () => { throw DatabaseUnavailable() })
  const wrong = inLine(async () => {
    await delay(LATE_MS)
    throw new Error('wrong')
  })
  const waited = inLine(async () => 'done')
  await t.rejects(lost, { code: 'database_unavailable' })
  await t.rejects(wrong, { message: 'wrong' })
  t.equal(await waited, 'done')
})
