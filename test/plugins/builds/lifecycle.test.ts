// How builds end, what is shown of them, and how long it is kept.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { BuildFailed } from '../../../plugins/builds/errors.ts'
import { BuildRepository } from '../../../plugins/builds/repository.ts'
import { settableClock } from '../../helpers/settable-clock.ts'
import { startBuilds, until } from './app.ts'
import { digestOf } from './scripted-runner.ts'

t.test('a build is shown in each state, and ready it names its image and where that comes from', async (t) => {
  const app = await startBuilds(t)
  const id = await app.build({ 'tags[team]': 'a' })
  const run = await app.runner.begun(id)
  t.match(await app.get(id), { id, status: 'building', queue_position: null, builder_id: null, builder_instance_id: null, image_ref: null, image_digest: null, error: null, started_at: /Z$/, completed_at: null, duration_ms: null, tags: { team: 'a' } })
  await run.progress.instance('vm1')
  await run.progress.pushing()
  await run.progress.pushed({ imageRef: 'x', digest: digestOf('x'), provenance: { sourceHash: 's', lockfileHashes: {}, builder: 'buildah', builderVersion: '1', timestamp: new Date() } })
  t.match(await app.get(id), { status: 'pushing', builder_instance_id: 'vm1', image_ref: null, image_digest: null })
  run.finish()
  t.match(await app.become(id, 'ready'), {
    image_ref: `localhost/builds/${id}:latest`, image_digest: digestOf(id), error: null, duration_ms: Number,
    provenance: { source_hash: /^[0-9a-f]{64}$/, lockfile_hashes: { 'package-lock.json': /^[0-9a-f]{64}$/ }, builder: 'buildah', builder_version: '1.28.2', timestamp: '2026-01-31T00:00:00.000Z' }
  })
  // They go behind the row, which says that nobody needs them any more.
  await until(async () => (await readdir(join(app.dataDir, 'builds', id))).join() === 'log')
})

t.test('a build that fails says why in a sentence of its own; a fault of the server is told by the log', async (t) => {
  const app = await startBuilds(t)
  app.runner.onRun = (run) => { run.fail(run.job.target === 'server' ? new Error('/secret/path') : BuildFailed('step 2 failed:\nno such file')) }
  t.match(await app.become(await app.build(), 'failed'), { error: 'step 2 failed:\nno such file', image_ref: null })
  t.match(JSON.parse((await app.call('GET', '/builds?status=failed')).text), [{ status: 'failed' }])
  const id = await app.build({ target: 'server' })
  t.match(await app.become(id, 'failed'), { error: `the server failed to do this build; its log has the cause under build ${id}` })
  t.ok(app.lines.some(({ build, err }) => build === id && JSON.stringify(err).includes('/secret/path')))
})

t.test('building and pushing together may take only so long', async (t) => {
  const app = await startBuilds(t)
  app.runner.onRun = async ({ progress }) => {
    progress.log('working')
    progress.log('still working')
    await progress.pushing()
  }
  const id = await app.build({ timeout_seconds: '1' })
  const failed = await app.become(id, 'failed')
  t.match(failed, { error: 'the build took longer than 1 s; its last lines:\nworking\nstill working' })
  t.ok(Number(failed['duration_ms']) >= 1000)
})

t.test('a build whose error is longer than anybody reads is cut', async (t) => {
  const app = await startBuilds(t)
  app.runner.onRun = (run) => { run.fail(BuildFailed('x'.repeat(50_000))) }
  t.equal(String((await app.become(await app.build(), 'failed'))['error']).length, 16 * 1024 + 1)
})

t.test('lists begin with the newest, are filtered by tags, and come in pages', async (t) => {
  const app = await startBuilds(t)
  const ids: string[] = []
  for (const tags of ['{"team":"x","env":"p"}', '{"team":"x"}', '{}']) ids.push(await app.build({ tags }))
  const listed = async (query: string): Promise<string[]> => JSON.parse((await app.call('GET', `/builds${query}`)).text).map(({ id }: { id: string }) => id)
  t.same(await listed(''), ids.toReversed())
  t.same(await listed('?sort=created_at'), ids)
  t.same(await listed('?tags[team]=x'), [ids[1], ids[0]])
  t.same(await listed('?tags[team]=x&tags[env]=p'), ids.slice(0, 1))
  t.same(await listed('?status=cancelled'), [])
  t.match((await app.call('GET', '/builds?limit=2')).headers['link'], /rel="next"/)
  t.same(await listed(`?limit=2&after=${ids[1] ?? ''}`), ids.slice(0, 1))
  for (const query of ['?limit=0', '?status=over', '?tags=x', '?other=1', '?after=nobody']) t.equal((await app.call('GET', `/builds${query}`)).status, 400, query)
})

t.test('only so many builds that are over are kept, and only so long', async (t) => {
  const app = await startBuilds(t, { config: { keepFinished: 3, concurrency: 1 } })
  app.runner.onRun = (run) => { if (run.job.target === undefined) run.finish() }
  const ids: string[] = []
  for (let count = 0; count < 5; count++) {
    const id = await app.build()
    ids.push(id)
    await app.become(id, 'ready')
  }
  const running = await app.build({ target: 'hold' })
  const waiting = await app.build()
  const kept = [waiting, running, ...ids.slice(2).reverse()]
  const listed = async (): Promise<string[]> => JSON.parse((await app.call('GET', '/builds')).text).map(({ id }: { id: string }) => id)
  // The last one's end is told before what it made too many goes.
  await until(async () => (await listed()).length === kept.length)
  t.same(await listed(), kept)
  t.same((await readdir(join(app.dataDir, 'builds'))).sort(), [...kept, 'uploading'].sort())
  t.match(await app.call('GET', `/builds/${ids[0] ?? ''}/events`), { status: 404 })
  await app.app.stop()
  const later = await startBuilds(t, { dataDir: app.dataDir, config: { keep: '1ms' } })
  later.runner.onRun = () => {}
  t.same(JSON.parse((await later.call('GET', '/builds')).text).map(({ id }: { id: string }) => id), [waiting])
})

t.test('a clock that is ahead for a moment removes no build, and those after it have the right times', async (t) => {
  const { clocks, set, pass } = settableClock(Date.now())
  const app = await startBuilds(t, { clocks, config: { keep: '720h' } })
  app.runner.onRun = (run) => { run.finish() }
  const listed = async (): Promise<string[]> => JSON.parse((await app.call('GET', '/builds')).text).map(({ id }: { id: string }) => id)
  const built = async (): Promise<string> => {
    const id = await app.build()
    await app.become(id, 'ready')
    return id
  }
  const before = await built()
  set(24 * 365)
  const ahead = await built()
  set(-24 * 365)
  const after = await built()
  t.equal((await app.get(after))['completed_at'], new Date(clocks.now()).toISOString())
  const further = await built()
  await until(async () => (await readdir(join(app.dataDir, 'builds', further))).join() === 'log')
  t.same((await listed()).sort(), [before, ahead, after, further].sort())
  // A clock that has been right for an hour makes builds too old.
  set(24 * 31)
  let last = ''
  await until(async () => {
    last = await built()
    pass(1)
    return !(await listed()).includes(before)
  })
  const left = await listed()
  t.notOk(left.includes(after))
  t.ok(left.includes(last))
})

t.test('figures tell how many builds there are and how they ended', async (t) => {
  const app = await startBuilds(t, { listen: true, config: { concurrency: 1 } })
  await app.call('POST', '/builders', {})
  const id = await app.build()
  await app.build()
  const port = app.lines.find(({ msg }) => msg === 'metrics served')?.['port']
  const figures = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text()
  await app.runner.begun(id)
  const now = await figures()
  for (const line of ['berth_builds{status="queued"} 1', 'berth_builds{status="building"} 1', 'berth_builds{status="pushing"} 0', 'berth_builds_builders 1']) t.match(now, line)
  ;(await app.runner.begun(id)).finish()
  await app.become(id, 'ready')
  t.match(await figures(), 'berth_builds_ended_total{status="ready"} 1')
  t.match(await figures(), 'berth_builds_duration_seconds_count{status="ready"} 1')
})

t.test('the document of the API has the form', async (t) => {
  const { app } = await startBuilds(t)
  const document = (await app.http.inject({ url: '/openapi.json' })).json()
  const { requestBody } = document.paths['/builds'].post
  t.same(Object.keys(requestBody.content), ['multipart/form-data'])
  t.match(document.components.schemas.CreateBuild, { required: ['source'], properties: { source: { format: 'binary' }, egress_mode: { enum: ['all', 'http_https_only'] } } })
})

t.test('a build whose end cannot be stored at first, or whose answer to that is lost, ends all the same', async (t) => {
  const app = await startBuilds(t)
  const real = Reflect.get(BuildRepository.prototype, 'finish')
  t.teardown(() => { BuildRepository.prototype.finish = real })
  const fates = ['not stored', 'answer lost']
  BuildRepository.prototype.finish = async function (...args) {
    const fate = fates.shift()
    if (fate !== 'not stored') await real.apply(this, args)
    if (fate !== undefined) throw new Error('Connection lost')
  }
  app.runner.onRun = (run) => { run.finish() }
  t.match(await app.become(await app.build(), 'ready'), { error: null })
  await until(async () => fates.length === 0)
  t.match(await app.become(await app.build(), 'ready'), { error: null })
})
