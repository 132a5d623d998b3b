// The order in which a run of the suite takes its files.
import { cpus } from 'node:os'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { roomOfHost } from '../../../setup/test/room.ts'
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

t.test('where processors have nothing to do, more of the short ones run, up to three, one look for each', async (t) => {
  const { begun, run, end } = gated()
  const looks: Array<(hasRoom: boolean) => void> = []
  const all = runJobs([9, 8, 7, 6, 5, 4, 3, 2, 1], run, () => false, async () => await new Promise((resolve) => { looks.push(resolve) }))
  const answer = async (hasRoom: boolean): Promise<void> => {
    looks.shift()?.(hasRoom)
    await new Promise(setImmediate)
  }
  t.same(begun, [9, 8, 1])
  t.equal(looks.length, 3)
  await answer(true)
  t.same(begun, [9, 8, 1, 2])
  await answer(false)
  t.same(begun, [9, 8, 1, 2], 'no room, no job')
  await answer(true)
  await answer(true)
  t.same(begun, [9, 8, 1, 2, 3, 4])
  t.equal(looks.length, 0, 'six are the most')
  await end(3)
  t.same(begun, [9, 8, 1, 2, 3, 4], 'it looks before the next one')
  await answer(true)
  t.same(begun, [9, 8, 1, 2, 3, 4, 5])
  for (const job of [9, 8, 7, 6, 5, 4, 2, 1]) await end(job)
  while (looks.length > 0) await answer(true)
  await all
  t.equal(begun.length, 9)
})

t.test('processors that all work are no room', async (t) => {
  const threads = cpus().map(() => new Worker('for (;;) {}', { eval: true }))
  t.teardown(async () => { for (const thread of threads) await thread.terminate() })
  t.equal(await roomOfHost(300)(), false)
})

t.test('what failed to run fails the whole; a run that is over begins nothing more, and tells what it left', async (t) => {
  await t.rejects(runJobs([1], async () => { throw new Error('no such program') }, () => false), { message: 'no such program' })
  const { begun, run, end } = gated()
  let isOver = false
  const all = runJobs([5, 4, 3, 2, 1, 0], run, () => isOver)
  isOver = true
  for (const job of [5, 4, 0]) await end(job)
  t.same(await all, [3, 2, 1])
  t.same(begun, [5, 4, 0])
})
