// What becomes of a push while the database is away.
import pino from 'pino'
import t from 'tap'
import { createJobs } from '../../../core/jobs/queue.ts'
import { createRunner, type RunnerParts } from '../../../plugins/pushes/runner.ts'
import type { PushRecord } from '../../../plugins/pushes/record.ts'
import { PushRepository } from '../../../plugins/pushes/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { hanging } from '../../helpers/hanging.ts'
import { startPushesApp, textLayout, upload } from './app.ts'

const PUSH: PushRecord = {
  id: 'one', status: 'queued', image: 'i', digest: 'd', origins: [], target: 't', destination: 't', insecure: false, isLent: false, keyId: null, layers: null, bytes: null, error: null, createdAt: 0, completedAt: null
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
    log: pino({ level: 'silent' }), repository, queue: jobs.queue('pushes', { concurrency: 1 }), copy: step('copy'), apiKeys: { current: async () => undefined }, metrics: { ended: () => undefined }, keepFinished: 1
  })
  runner.add(PUSH, undefined)
  await eventually('it has ended', () => done.includes('forget'), { limitMs: 30_000 })
  t.same(done, ['begin', 'copy', 'finish', 'forget'])
})

t.test('a push whose size cannot be stored at first is copied all the same, and shows it', async (t) => {
  const jobs = createJobs()
  t.teardown(async () => { await jobs.close() })
  const done: string[] = []
  let isAway = true
  const repository: RunnerParts['repository'] = {
    begin: async () => undefined,
    weigh: async (_id, { layers, bytes }) => {
      if (isAway) { isAway = false; throw new Error('Connection lost') }
      done.push(`${layers} layers, ${bytes} bytes`)
    },
    finish: async (_id, _at, failure) => { done.push(failure ?? 'pushed') },
    forget: async () => { done.push('forget') }
  }
  const runner = createRunner({
    log: pino({ level: 'silent' }),
    repository,
    queue: jobs.queue('pushes', { concurrency: 1 }),
    copy: async (_push, { weighed }) => { await weighed({ layers: 2, bytes: 3 }) },
    apiKeys: { current: async () => undefined },
    metrics: { ended: () => undefined },
    keepFinished: 1
  })
  runner.add(PUSH, undefined)
  await eventually('it has ended', () => done.includes('forget'), { limitMs: 30_000 })
  t.same(done, ['2 layers, 3 bytes', 'pushed', 'forget'])
})

t.test('a push whose row was stored and whose answer was lost is removed, and does not seem to wait', async (t) => {
  const app = await startPushesApp(t)
  const image = `${app.host}/app:1`
  await upload(app, await textLayout(t, 'x'), 'app:1')
  failOnce(t, PushRepository.prototype, 'insert', { done: true })
  const body = { image: 'localhost/app:1', target: `${image}-copy` }
  t.ok((await app.request('POST', '/pushes', body)).status >= 500)
  t.match((await app.request('GET', '/pushes')).body, [{ status: 'queued' }])
  await eventually('it is gone', async () => (await app.sdk.pushes.list()).length === 0, { limitMs: 30_000 })
})

t.test('creates that wait for one whose database hangs are refused with it', async (t) => {
  const app = await startPushesApp(t)
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const create = async (copy: number): Promise<number> => (await app.request('POST', '/pushes', { image: 'localhost/app:1', target: `${app.host}/app:${copy}` })).status
  const hang = hanging(t, PushRepository.prototype, 'insert')
  t.same(await Promise.all([create(2), create(3), create(4), create(5)]), [503, 503, 503, 503])
  t.equal(hang.times, 1)
  hang.end()
  t.equal(await create(6), 202)
})
