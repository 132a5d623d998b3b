// Decides which job runs when. Machines under emulation are heavy, so as many jobs run at a time as the smallest supported host has processors. One more works from the
// other end of the list, where the short ones are: many of these mostly wait. And as long as processors have nothing to do, more do the same.

const HEAVY = 2
const MOST_MORE = 3

/**
 * Runs every job, and begins no more once `isOver` returns true.
 * @param jobs the longest first
 * @param hasRoom whether there are processors for one more than usual, after a while; absent: there never are
 * @returns the jobs that were not begun
 */
export async function runJobs<Job> (jobs: readonly Job[], run: (job: Job) => Promise<void>, isOver: () => boolean, hasRoom?: () => Promise<boolean>): Promise<Job[]> {
  const waiting = [...jobs]
  const next = (take: () => Job | undefined): Job | undefined => isOver() ? undefined : take()
  const work = async (take: () => Job | undefined): Promise<void> => {
    for (let job = next(take); job !== undefined; job = next(take)) await run(job)
  }
  const workInRoom = async (): Promise<void> => {
    if (hasRoom === undefined) return
    while (waiting.length > 0 && !isOver()) {
      if (!await hasRoom()) continue
      const job = next(() => waiting.pop())
      if (job !== undefined) await run(job)
    }
  }
  await Promise.all([
    ...Array.from({ length: HEAVY }, async () => { await work(() => waiting.shift()) }),
    work(() => waiting.pop()),
    ...Array.from({ length: MOST_MORE }, workInRoom)
  ])
  return waiting
}
