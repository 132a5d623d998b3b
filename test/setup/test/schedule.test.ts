// The order in which a run of the suite takes its files.
import t from 'tap'
import { runJobs } from '../../../setup/test/schedule.ts'

/** Jobs that end when the test says so. */
function gated (): { begun: number[], run: (job: number) => Promise<void>, end: (job: number) => Promise<void> } {
  const begun: number[] = []
  const ends = new Map<number, () => void>()
  return {
    begun,
    run: async (job) => {
      begun.push(job)
      await new Promise<void>((resolve) => { ends.set(job, resolve) })
    },
    end: async (job) => {
      ends.get(job)?.()
      await new Promise(setImmediate)
    }
  }
}

t.test('the two longest run at a time, and beside them the shortest ones, each once', async (t) => {
  const { begun, run, end } = gated()
  const all = runJobs([9, 8, 7, 6, 2, 1], run, () => false)
  t.same(begun, [9, 8, 1])
  await end(1)
  t.same(begun, [9, 8, 1, 2], 'a short one gives way to a short one')
  await end(9)
  t.same(begun, [9, 8, 1, 2, 7], 'a long one to a long one')
  await end(2)
  t.same(begun, [9, 8, 1, 2, 7, 6])
  for (const job of [8, 7, 6]) await end(job)
  await all
  t.equal(begun.length, 6)
})

t.test('what failed to run fails the whole; an interrupted run begins nothing more', async (t) => {
  await t.rejects(runJobs([1], async () => { throw new Error('no such program') }, () => false), { message: 'no such program' })
  const { begun, run, end } = gated()
  let isOver = false
  const all = runJobs([3, 2, 1, 0], run, () => isOver)
  isOver = true
  for (const job of [3, 2, 0]) await end(job)
  await all
  t.same(begun, [3, 2, 0])
})
