// Which build runs when, where the others stand, and how each is cancelled.
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { SOURCE, startBuilds, until, type BuildsApp } from './app.ts'

const positions = async ({ get }: BuildsApp, ids: readonly string[]): Promise<unknown[]> => await Promise.all(ids.map(async (id) => (await get(id))['queue_position']))

t.test('ten builds at once with a limit of two run two at a time and in order, and their positions are right throughout', async (t) => {
  const app = await startBuilds(t)
  const { runner, post, get } = app
  const { body: first } = await post({ source: SOURCE })
  t.match(first, { status: 'building' }, 'the first one does not wait')
  const ids = [String(first['id'])]
  // Of two that are started at once the second may be the first to reach the runner.
  await runner.begun(ids[0] ?? '')
  for (let count = 1; count < 10; count++) ids.push(await app.build())
  await runner.begun(ids[1] ?? '')
  for (let done = 0; done < 10; done++) {
    const waiting = Math.max(0, 8 - done)
    const expected = ids.map((_id, index) => index < 10 - waiting ? null : index - (10 - waiting) + 1)
    t.same(await positions(app, ids), expected, `after ${done}`)
    const statuses = await Promise.all(ids.map(async (id) => (await get(id))['status']))
    t.same(statuses, ids.map((_id, index) => index < done ? 'ready' : index < 10 - waiting ? 'building' : 'queued'))
    const run = await runner.begun(ids[done] ?? '')
    run.finish()
    await app.become(ids[done] ?? '', 'ready')
    if (waiting > 0) await runner.begun(ids[done + 2] ?? '')
  }
  t.same(runner.order, ids)
  t.equal(runner.most, 2)
  const listed: { id: string }[] = JSON.parse((await app.call('GET', '/builds?sort=created_at')).text)
  t.same(listed.map(({ id }) => id), ids, 'the list is in the order of creation')
})

t.test('ten requests at the same moment become ten builds, in the order of the list', async (t) => {
  const app = await startBuilds(t)
  app.runner.onRun = (run) => { run.finish() }
  const ids = await Promise.all(Array.from({ length: 10 }, async () => await app.build()))
  for (const id of ids) await app.become(id, 'ready')
  const listed: { id: string, created_at: string, started_at: string }[] = JSON.parse((await app.call('GET', '/builds?sort=created_at')).text)
  t.same(listed.map(({ id }) => id).sort(), [...app.runner.order].sort())
  t.same(listed.map(({ started_at: at }) => at), listed.map(({ started_at: at }) => at).sort())
  t.same(listed.map(({ created_at: at }) => at), listed.map(({ created_at: at }) => at).sort())
  t.ok(app.runner.most <= 2)
})

t.test('builds of one builder run one after the other, and others overtake those that wait for it', async (t) => {
  const app = await startBuilds(t)
  const { runner, call } = app
  const { body: { id: builder } } = await call('POST', '/builders', { id: 'b1' })
  const one = await app.build({ builder_id: 'b1' })
  await runner.begun(one)
  const two = await app.build({ builder_id: 'b1' })
  const three = await app.build({ builder_id: 'b1' })
  const other = await app.build()
  await runner.begun(other)
  t.same(runner.order, [one, other])
  t.same(await positions(app, [one, two, three, other]), [null, 1, 2, null])
  t.match((await call('GET', '/builders/b1')).body, { id: builder, active_build_id: one, queued_builds: [two, three], last_used_at: /Z$/ })
  const run = await runner.begun(one)
  t.match(run.job, { cacheVolumeId: /^cache-/ })
  t.equal((await runner.begun(other)).job.cacheVolumeId, undefined)
  run.finish()
  t.equal((await runner.begun(two)).job.cacheVolumeId, run.job.cacheVolumeId)
  t.match((await call('GET', '/builders/b1')).body, { active_build_id: two, queued_builds: [three] })
  ;(await runner.begun(two)).finish()
  ;(await runner.begun(three)).finish()
  await app.become(three, 'ready')
  await until(async () => (await call('GET', '/builders/b1')).body['active_build_id'] === null)
  t.match((await call('GET', '/builders/b1')).body, { active_build_id: null, queued_builds: [] })
})

t.test('builds that wait count for their key after a restart, too, until they are over', async (t) => {
  const config = { concurrency: 1, maxPerKey: 3 }
  const first = await startBuilds(t, { config })
  const [running, next] = [await first.build(), await first.build(), await first.build()]
  await first.runner.begun(running)
  await first.app.stop()
  const app = await startBuilds(t, { dataDir: first.dataDir, config })
  t.match(await app.get(running), { status: 'failed' })
  t.equal((await app.post({ source: SOURCE })).status, 202)
  t.match(await app.post({ source: SOURCE }), { status: 429, body: { message: /^the key "process" has 3 builds that are not over/ } })
  ;(await app.runner.begun(next)).finish()
  // It is over once all that it had is let go of, a moment after it is ready.
  await app.become(next, 'ready')
  t.ok(await eventually('there is room', async () => (await app.post({ source: SOURCE })).status === 202))
})

t.test('a build that waits is cancelled at once and never runs', async (t) => {
  const app = await startBuilds(t, { config: { concurrency: 1 } })
  const running = await app.build()
  const waiting = await app.build()
  const last = await app.build()
  t.equal((await app.call('DELETE', `/builds/${waiting}`)).status, 204)
  t.match(await app.get(waiting), { status: 'cancelled', queue_position: null, started_at: null, completed_at: /Z$/, duration_ms: null, error: null })
  t.equal((await app.get(last))['queue_position'], 1)
  ;(await app.runner.begun(running)).finish()
  await app.runner.begun(last)
  t.same(app.runner.order, [running, last])
  t.same((await app.files()).filter((name) => name.startsWith(waiting)), [waiting])
})

for (const state of ['building', 'pushing'] as const) {
  t.test(`a build that is ${state} is cancelled, and the answer comes when its VM is gone`, async (t) => {
    const app = await startBuilds(t)
    const id = await app.build()
    const run = await app.runner.begun(id)
    if (state === 'pushing') await run.progress.pushing()
    let gone = (): void => {}
    run.removal = new Promise((resolve) => { gone = resolve })
    let answered = 0
    const answers = Promise.all([1, 2].map(async () => {
      const { status } = await app.call('DELETE', `/builds/${id}`)
      answered++
      return status
    }))
    await until(async () => run.signal.aborted)
    t.match(await app.get(id), { status: state })
    t.equal(answered, 0)
    gone()
    t.same(await answers, [204, 204])
    t.match(await app.get(id), { status: 'cancelled', error: null, duration_ms: Number })
    t.same((await app.files()).filter((name) => name.startsWith(id)), [id])
  })
}

t.test('a build that is over cannot be cancelled, nor one that ends just then', async (t) => {
  const app = await startBuilds(t)
  const id = await app.build()
  const run = await app.runner.begun(id)
  // It is past the point at which it could be stopped.
  run.finish()
  const { status, body, headers } = await app.call('DELETE', `/builds/${id}`)
  t.match({ status, body, headers }, { status: 409, body: { code: 'invalid_state', message: /cannot be cancelled: it is ready/ }, headers: { 'x-should-retry': 'false' } })
  t.match(await app.get(id), { status: 'ready' })
  t.match(await app.call('DELETE', '/builds/nobody'), { status: 404, body: { code: 'not_found' } })
})
