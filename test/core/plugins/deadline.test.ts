// Work is bounded by time and by an outer signal.
import t from 'tap'
import { withDeadline } from '../../../core/plugins/deadline.ts'

const never = (): Promise<void> => new Promise(() => undefined)

t.test('work that ends in time ends the call, its failure included', async (t) => {
  await withDeadline('this', 10_000, undefined, async () => undefined)
  await t.rejects(withDeadline('this', 10_000, undefined, async () => { throw new Error('own fault') }), { message: 'own fault' })
})

t.test('work that takes too long is told so by its signal and left alone', async (t) => {
  let told: unknown
  await t.rejects(withDeadline('starting plugin x', 20, undefined, async signal => {
    signal.addEventListener('abort', () => { told = signal.reason })
    await never()
  }), { message: 'starting plugin x took longer than 0.02 s' })
  t.match(told, { message: /took longer/ })
})

t.test('an outer abort ends the call with its reason, also when it came first', async (t) => {
  const outer = new AbortController()
  const call = withDeadline('this', 10_000, outer.signal, never)
  outer.abort(new Error('the server is stopping'))
  await t.rejects(call, { message: 'the server is stopping' })
  await t.rejects(withDeadline('this', 10_000, outer.signal, async () => undefined), { message: 'the server is stopping' })
})
