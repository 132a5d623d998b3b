// All calls about builds and builders by the official SDK.
import Hypeman, { toFile } from '@onkernel/hypeman'
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { SOURCE, startBuilds } from './app.ts'
import { digestOf } from './scripted-runner.ts'

const refusal = async (work: Promise<unknown>): Promise<unknown> => await work.then(() => undefined, (error: unknown) => error)

t.test('the SDK asks for a build, follows it and cancels another', async (t) => {
  const { app, runner } = await startBuilds(t, { listen: true })
  const sdk = new Hypeman({ baseURL: app.address(), apiKey: ADMIN_KEY, maxRetries: 0 })
  const source = await toFile(SOURCE, 'source.tar.gz')
  const made = await sdk.builds.create({
    source, dockerfile: 'FROM scratch\n', base_image_digest: digestOf('base'), cache_scope: 'team', global_cache_key: 'node', is_admin_build: 'true', image_name: 'team/web', secrets: '[]',
    tags: '{"team":"a"}', cpus: 1, memory_mb: 512, timeout_seconds: 60
  })
  t.match(made, { status: 'building', tags: { team: 'a' }, created_at: /Z$/, builder_id: null })
  const run = await runner.begun(made.id)
  t.match(run.job, { dockerfile: 'FROM scratch\n', imageName: 'team/web', cacheScope: 'team', globalCacheKey: 'node', writesGlobalCache: true, vcpus: 1, memoryBytes: 2 ** 29 })
  run.progress.log('hello')
  const events: unknown[] = []
  for await (const event of await sdk.builds.events(made.id, { follow: true })) {
    events.push(event.content ?? event.status)
    if (event.content === 'hello') run.finish()
  }
  t.same(events, ['queued', 'building', 'hello', 'ready'])
  const ready = await sdk.builds.get(made.id)
  t.match(ready, {
    status: 'ready', image_ref: 'localhost/team/web:latest', image_digest: digestOf(made.id), error: null, queue_position: null,
    provenance: { base_image_digest: digestOf('base'), lockfile_hashes: { 'package-lock.json': /^[0-9a-f]{64}$/ }, timestamp: '2026-01-31T00:00:00.000Z' }
  })
  t.notOk('buildkit_version' in (ready.provenance ?? {}), 'it was not BuildKit')
  t.equal(ready.duration_ms, Date.parse(ready.completed_at ?? '') - Date.parse(ready.started_at ?? ''))
  const other = await sdk.builds.create({ source })
  t.same((await sdk.builds.list()).map(({ id }) => id), [other.id, made.id], 'the newest first: the SDK reads one page, of a thousand')
  t.same((await sdk.builds.list({ tags: { team: 'a' } })).map(({ id }) => id), [made.id])
  await runner.begun(other.id)
  await sdk.builds.cancel(other.id)
  t.match(await sdk.builds.get(other.id), { status: 'cancelled' })
  t.match(await refusal(sdk.builds.cancel(other.id)), { status: 409, error: { code: 'invalid_state' } })
  t.match(await refusal(sdk.builds.get('nobody')), { status: 404 })
  t.match(await refusal(sdk.builds.create({ source, cpus: 99 })), { status: 400, error: { message: 'cpus: must be at most 8' } })
})

t.test('the SDK makes, shows, lists, prunes and removes builders', async (t) => {
  const { app, runner } = await startBuilds(t, { listen: true })
  const sdk = new Hypeman({ baseURL: app.address(), apiKey: ADMIN_KEY, maxRetries: 0 })
  const plain = await sdk.builders.create({})
  const made = await sdk.builders.create({ id: 'mine', name: 'Mine', disk_size_gb: 1, tags: { team: 'a' } })
  t.match(made, { id: 'mine', name: 'Mine', disk_size_gb: 1, max_concurrency: 1, status: 'ready', queued_builds: [] })
  t.same(await sdk.builders.get('mine'), made)
  t.same((await sdk.builders.list()).map(({ id }) => id), [plain.id, 'mine'])
  t.same(await sdk.builders.list({ tags: { team: 'a' } }), [made])
  t.match(await sdk.builders.prune('mine'), { id: 'mine', status: 'pruning' })
  const build = await sdk.builds.create({ source: await toFile(SOURCE, 'source.tar.gz'), builder_id: 'mine' })
  await runner.begun(build.id)
  t.match(await sdk.builders.get('mine'), { status: 'ready', active_build_id: build.id, last_used_at: /Z$/ })
  t.match(await refusal(sdk.builders.delete('mine')), { status: 409, error: { code: 'builder_busy' } })
  await sdk.builds.cancel(build.id)
  await sdk.builders.delete('mine')
  t.match(await refusal(sdk.builders.get('mine')), { status: 404 })
})
