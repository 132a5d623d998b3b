// What becomes of a push while the database is away.
import pino from 'pino'
import t from 'tap'
import { createJobs } from '../../../core/jobs/queue.ts'
import { createRunner, type RunnerParts } from '../../../plugins/pushes/runner.ts'
import type { PushRecord } from '../../../plugins/pushes/record.ts'
import { eventually } from '../../helpers/eventually.ts'

const PUSH: PushRecord = {
  id: 'one', status: 'queued', image: 'i', digest: 'd', origins: [], target: 't', destination: 't', insecure: false, isLent: false, layers: null, bytes: null, error: null, createdAt: 0, completedAt: null
}

t.test('a push whose beginning and end cannot be stored at first ends all the same', async (t) => {
  const jobs = createJobs()
  t.teardown(async () => { await jobs.close() })
  const done: string[] = []
  const failing = new Set(['begin', 'finish'])
  const step = (name: string) => async () => {
    if (failing.delete(name)) throw new Error('Connection lost')
    done.push(name)
  }
  const repository: RunnerParts['repository'] = { begin: step('begin'), weigh: step('weigh'), finish: step('finish'), forget: step('forget') }
  const runner = createRunner({
    log: pino({ level: 'silent' }), repository, queue: jobs.queue('pushes', { concurrency: 1 }), copy: step('copy'), metrics: { ended: () => undefined }, keepFinished: 1
  })
  runner.add(PUSH, undefined)
  await eventually('it has ended', () => done.includes('forget'), { limitMs: 30_000 })
  t.same(done, ['begin', 'copy', 'finish', 'forget'])
})
