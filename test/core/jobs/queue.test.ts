import t from 'tap'
import { createJobs } from '../../../core/jobs/queue.ts'

interface Gate { readonly open: () => void, readonly passed: Promise<void> }
function gate (): Gate {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => { open = resolve })
  return { open: () => open(), passed }
}

t.test('jobs run first in first out, no more at once than allowed, and know their place', async (t) => {
  const queue = createJobs().queue('pull', { concurrency: 2 })
  const gates = [gate(), gate(), gate(), gate()]
  const started: number[] = []
  const jobs = gates.map(({ passed }, index) => queue.push(`job-${index}`, async () => { started.push(index); await passed; return index }))
  t.same(started, [0, 1])
  t.same([0, 1, 2, 3].map((index) => queue.position(`job-${index}`)), [undefined, undefined, 1, 2])
  gates[1]?.open()
  await jobs[1]
  await new Promise(setImmediate)
  t.same(started, [0, 1, 2])
  t.same([2, 3].map((index) => queue.position(`job-${index}`)), [undefined, 1])
  for (const { open } of gates) open()
  t.same(await Promise.all(jobs), [0, 1, 2, 3])
})

t.test('an id that is queued or running is the same job', async (t) => {
  const queue = createJobs().queue('pull', { concurrency: 1 })
  const { open, passed } = gate()
  let runs = 0
  const first = queue.push('a', async () => { runs += 1; await passed })
  t.equal(queue.push('a', async () => { runs += 1 }), first)
  open()
  await first
  await queue.push('a', async () => { runs += 1 })
  t.equal(runs, 2, 'a job that has ended may run again')
})

t.test('a failure is its own, and the next job runs', async (t) => {
  const queue = createJobs().queue('pull', { concurrency: 1 })
  const failing = queue.push('a', async () => { throw new Error('no') })
  const next = queue.push('b', async () => 'fine')
  await t.rejects(failing, { message: 'no' })
  t.equal(await next, 'fine')
})

t.test('cancelling takes a waiting job out and aborts a running one', async (t) => {
  const queue = createJobs().queue('pull', { concurrency: 1 })
  const running = queue.push('a', (signal) => new Promise((_resolve, reject) => { signal.addEventListener('abort', () => reject(signal.reason)) }))
  const waiting = queue.push('b', async () => t.fail('it was cancelled'))
  queue.cancel('b')
  await t.rejects(waiting, { name: 'AbortError' })
  t.equal(queue.position('b'), undefined)
  queue.cancel('a')
  await t.rejects(running, { name: 'AbortError' })
  queue.cancel('unknown')
})

t.test('closing cancels everything, waits for what runs, and takes nothing more', async (t) => {
  const jobs = createJobs()
  const queue = jobs.queue('pull', { concurrency: 1 })
  t.equal(jobs.queue('pull', { concurrency: 1 }), queue, 'one name is one queue')
  const { open, passed } = gate()
  let ended = false
  const running = queue.push('a', async () => { await passed; ended = true })
  const waiting = queue.push('b', async () => t.fail('it was cancelled'))
  waiting.catch(() => undefined)
  const closing = jobs.close()
  setImmediate(open)
  await closing
  t.equal(ended, true)
  await running
  await t.rejects(waiting, { name: 'AbortError' })
  await t.rejects(queue.push('c', async () => undefined), { code: 'invalid_state' })
})

t.test('a queue for less than one job at once is refused', async (t) => {
  t.throws(() => createJobs().queue('x', { concurrency: 0 }), RangeError)
})
