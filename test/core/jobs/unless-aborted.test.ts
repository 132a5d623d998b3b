import { getEventListeners } from 'node:events'
import t from 'tap'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'

t.test('what comes of the work comes of the wait, and nothing stays at the signal', async (t) => {
  const { signal } = new AbortController()
  t.equal(await unlessAborted(signal, Promise.resolve('done')), 'done')
  await t.rejects(unlessAborted(signal, Promise.reject(new Error('it broke'))), { message: 'it broke' })
  t.equal(await unlessAborted(undefined, Promise.resolve('without a signal')), 'without a signal')
  t.same(getEventListeners(signal, 'abort'), [])
})

t.test('an abort ends the wait with its reason, and a failure that comes later is nobody\'s', async (t) => {
  const controller = new AbortController()
  let fail = (_error: Error): void => {}
  const work = new Promise<never>((_resolve, reject) => { fail = reject })
  const wait = unlessAborted(controller.signal, work)
  controller.abort(new Error('stopping'))
  await t.rejects(wait, { message: 'stopping' })
  fail(new Error('too late'))
  // An unhandled rejection would end this process.
  await new Promise(resolve => setImmediate(resolve))
  t.same(getEventListeners(controller.signal, 'abort'), [])
})

t.test('a signal that has aborted already lets nobody wait', async (t) => {
  await t.rejects(unlessAborted(AbortSignal.abort(new Error('stopped')), new Promise(() => {})), { message: 'stopped' })
})
