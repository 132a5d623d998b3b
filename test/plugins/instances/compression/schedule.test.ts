// When compressions run, and that whoever needs the image waits only for what touches its files.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createJobs } from '../../../../core/jobs/queue.ts'
import { createCompressionSchedule, type CompressionJob } from '../../../../plugins/instances/compression/schedule.ts'

interface Scripted extends CompressionJob {
  readonly steps: string[]
  /** lets the step end */
  end (step: 'write' | 'commit'): void
  reached (step: string): Promise<void>
}

/** A job whose steps end when the test says so; the writing also at the signal, a moment later. */
function scripted (failure?: Error): Scripted {
  const steps: string[] = []
  const ends = { write: deferred(), commit: deferred() }
  const reached = new Map<string, ReturnType<typeof deferred>>()
  const at = (step: string): ReturnType<typeof deferred> => {
    const known = reached.get(step) ?? deferred()
    reached.set(step, known)
    return known
  }
  const note = (step: string): void => {
    steps.push(step)
    at(step).resolve()
  }
  return {
    steps,
    end (step) { ends[step].resolve() },
    reached: async (step) => { await at(step).promise },
    async write (signal) {
      note('write')
      const aborted = new Promise<void>((resolve) => { signal.addEventListener('abort', () => { resolve() }, { once: true }) })
      await Promise.race([ends.write.promise, aborted])
      await sleep(20)
      note('written')
      signal.throwIfAborted()
      if (failure !== undefined) throw failure
    },
    async commit (signal) {
      note('commit')
      await ends.commit.promise
      note(signal.aborted ? 'given up' : 'committed')
    },
    async failed (error) { note(error instanceof Error ? error.message : 'failed') }
  }
}

function deferred (): { promise: Promise<void>, resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((_resolve) => { resolve = _resolve })
  return { promise, resolve: () => { resolve() } }
}

const schedule = (): ReturnType<typeof createCompressionSchedule> => createCompressionSchedule(createJobs().queue('compression', { concurrency: 1 }))

t.test('one is written and committed, and the next one has its turn', async (t) => {
  const compressions = schedule()
  const [first, second] = [scripted(), scripted()]
  compressions.plan('a', 0, first)
  compressions.plan('b', 0, second)
  await first.reached('write')
  await sleep(20)
  t.same(second.steps, [])
  first.end('write')
  first.end('commit')
  await second.reached('write')
  t.same(first.steps, ['write', 'written', 'commit', 'committed'])
  await compressions.close()
})

t.test('whoever cancels waits for the writing to have ended', async (t) => {
  const compressions = schedule()
  const job = scripted()
  compressions.plan('a', 0, job)
  await job.reached('write')
  await compressions.cancel('a')
  t.same(job.steps, ['write', 'written'])
  await compressions.close()
  t.same(job.steps, ['write', 'written'], 'neither committed nor failed')
})

t.test('whoever cancels does not wait for a commit, which may be waiting for the same lock', async (t) => {
  const compressions = schedule()
  const [job, next] = [scripted(), scripted()]
  compressions.plan('a', 0, job)
  job.end('write')
  await job.reached('commit')
  await compressions.cancel('a')
  compressions.plan('a', 0, next)
  await compressions.cancel('a')
  compressions.plan('a', 0, next)
  await sleep(30)
  t.same(next.steps, [], 'one that is planned in its place begins only after it: both use the same file')
  job.end('commit')
  await next.reached('write')
  t.same(job.steps, ['write', 'written', 'commit', 'given up'])
  await compressions.close()
})

t.test('the time is waited for, and cancelled in the meantime, even when it is far away', async (t) => {
  const compressions = schedule()
  const [soon, late] = [scripted(), scripted()]
  // The delay of a compression keeps no server from ending, and no test either.
  const awake = setInterval(() => {}, 1000)
  t.teardown(() => { clearInterval(awake) })
  const began = performance.now()
  compressions.plan('late', Number.MAX_SAFE_INTEGER, late)
  compressions.plan('soon', 80, soon)
  await soon.reached('write')
  t.ok(performance.now() >= began + 80)
  await compressions.cancel('late')
  await compressions.close()
  t.same(late.steps, [])
})

t.test('a failure is told, and the end of the server is none', async (t) => {
  const compressions = schedule()
  const failing = scripted(new Error('the disk is full'))
  compressions.plan('a', 0, failing)
  failing.end('write')
  await failing.reached('the disk is full')
  const jobs = createJobs()
  const others = createCompressionSchedule(jobs.queue('compression', { concurrency: 1 }))
  const [running, waiting] = [scripted(), scripted()]
  others.plan('a', 0, running)
  await running.reached('write')
  others.plan('b', 0, waiting)
  await sleep(20)
  await jobs.close()
  await others.close()
  t.same([running.steps, waiting.steps], [['write', 'written'], []])
  await others.cancel('nobody')
})
