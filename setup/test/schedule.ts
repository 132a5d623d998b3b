// Decides which job runs when. Machines under emulation are heavy, so as many jobs run at a time as the smallest supported host has processors. One more works from the
// other end of the list, where the short ones are: many of these mostly wait.

const HEAVY = 2

/**
 * Runs every job, and starts no more once `isOver` returns true.
 * @param jobs the longest first
 */
export async function runJobs<Job> (jobs: readonly Job[], run: (job: Job) => Promise<void>, isOver: () => boolean): Promise<void> {
  const waiting = [...jobs]
  const work = async (take: () => Job | undefined): Promise<void> => {
    for (let job = take(); job !== undefined && !isOver(); job = take()) await run(job)
  }
  await Promise.all([...Array.from({ length: HEAVY }, async () => { await work(() => waiting.shift()) }), work(() => waiting.pop())])
}
