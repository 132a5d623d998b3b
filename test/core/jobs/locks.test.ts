import t from 'tap'
import { createLocks, type Locks } from '../../../core/jobs/locks.ts'

/** Something under way that ends when told to, and says when it began. */
function task (locks: Locks, way: 'hold' | 'share', key = 'a'): { readonly began: () => boolean, end: () => Promise<void> } {
  let began = false
  let end = (): void => {}
  const gate = new Promise<void>((resolve) => { end = resolve })
  const done = locks[way](key, async () => {
    began = true
    await gate
  })
  return { began: () => began, end: async () => { end(); await done } }
}

async function turn (): Promise<void> { await new Promise((resolve) => setImmediate(resolve)) }

t.test('a key is held by one at a time, in the order in which they came, and other keys are free', async (t) => {
  const locks = createLocks()
  const [first, second, other] = [task(locks, 'hold'), task(locks, 'hold'), task(locks, 'hold', 'b')]
  await turn()
  t.strictSame([first.began(), second.began(), other.began()], [true, false, true])
  await first.end()
  await turn()
  t.equal(second.began(), true)
  await second.end()
  await other.end()
})

t.test('those that share a key go side by side, and whoever holds it waits for all of them', async (t) => {
  const locks = createLocks()
  const [first, second] = [task(locks, 'share'), task(locks, 'share')]
  const holder = task(locks, 'hold')
  await turn()
  t.strictSame([first.began(), second.began(), holder.began()], [true, true, false])
  await first.end()
  await turn()
  t.equal(holder.began(), false)
  await second.end()
  await turn()
  t.equal(holder.began(), true)
  await holder.end()
})

t.test('one that shares does not overtake one that waits to hold', async (t) => {
  const locks = createLocks()
  const [first, holder, late] = [task(locks, 'share'), task(locks, 'hold'), task(locks, 'share')]
  await turn()
  t.equal(late.began(), false)
  await first.end()
  await turn()
  t.strictSame([holder.began(), late.began()], [true, false])
  await holder.end()
  await turn()
  t.equal(late.began(), true)
  await late.end()
})

t.test('work that fails frees the key', async (t) => {
  const locks = createLocks()
  await t.rejects(locks.hold('a', async () => { throw new Error('no') }), /no/)
  await t.rejects(locks.share('a', async () => { throw new Error('no') }), /no/)
  t.equal(await locks.hold('a', async () => 'free'), 'free')
})

t.test('a key is used as long as somebody holds it, shares it or waits for it', async (t) => {
  const locks = createLocks()
  t.equal(locks.isUsed('a'), false)
  const [holder, late] = [task(locks, 'hold'), task(locks, 'share')]
  await turn()
  t.equal(locks.isUsed('a'), true)
  await holder.end()
  await turn()
  t.equal(locks.isUsed('a'), true)
  await late.end()
  await turn()
  t.equal(locks.isUsed('a'), false)
})

t.test('who stops waiting for a key leaves the line, and nobody overtakes whoever has it; work that has begun is not cut off', async (t) => {
  const locks = createLocks()
  const holder = task(locks, 'hold')
  const leaving = new AbortController()
  let began = false
  const left = locks.hold('a', async () => { began = true }, leaving.signal)
  const late = task(locks, 'hold')
  leaving.abort(new Error('gone'))
  await t.rejects(left, { message: 'gone' })
  await turn()
  t.strictSame([began, late.began()], [false, false])
  await holder.end()
  await turn()
  t.strictSame([began, late.began()], [false, true])
  await late.end()
  t.equal(locks.isUsed('a'), false)
  const later = new AbortController()
  t.equal(await locks.hold('a', async () => {
    later.abort()
    await turn()
    return 'done'
  }, later.signal), 'done')
})
