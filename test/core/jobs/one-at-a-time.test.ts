import t from 'tap'
import { setImmediate as tick } from 'node:timers/promises'
import { OneAtATime } from '../../../core/jobs/one-at-a-time.ts'

t.test('works run one after the other, in the order in which they were asked for', async (t) => {
  const turns = new OneAtATime()
  const seen: string[] = []
  const work = (name: string) => async (): Promise<string> => {
    seen.push(`${name} begins`)
    await tick()
    seen.push(`${name} ends`)
    return name
  }
  t.same(await Promise.all(['a', 'b', 'c'].map(name => turns.run(work(name)))), ['a', 'b', 'c'])
  t.same(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

t.test('a work that fails, at once or later, tells its caller alone, and the next one runs', async (t) => {
  const turns = new OneAtATime()
  const failures = [
    turns.run(() => { throw new Error('at once') }),
    turns.run(async () => { await tick(); throw new Error('later') })
  ]
  const last = turns.run(() => 'fine')
  t.match(await Promise.allSettled(failures), [{ reason: { message: 'at once' } }, { reason: { message: 'later' } }])
  t.equal(await last, 'fine')
})

t.test('it is idle once all is over, however that went', async (t) => {
  const turns = new OneAtATime()
  let isOver = false
  const failed = t.rejects(turns.run(async () => { await tick(); isOver = true; throw new Error('no') }), { message: 'no' })
  await turns.idle()
  t.ok(isOver)
  await failed
})
