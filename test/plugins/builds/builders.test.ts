// Builders: made, listed, refused, pruned, removed, and put in order by the next server.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { openDatabase } from '../instances/database.ts'
import { SOURCE, startBuilds, until, type BuildsApp } from './app.ts'

const disks = async ({ dataDir }: BuildsApp): Promise<string[]> => (await readdir(join(dataDir, 'volumes/disks'))).sort()

t.test('a builder is made with a disk of its own, shown, listed and removed', async (t) => {
  const app = await startBuilds(t)
  const { call } = app
  const made = await call('POST', '/builders', { name: 'Team A', disk_size_gb: 2, tags: { team: 'a' } })
  t.match(made, { status: 201, body: { name: 'Team A', disk_size_gb: 2, max_concurrency: 1, status: 'ready', active_build_id: null, queued_builds: [], last_used_at: null, created_at: /Z$/, tags: { team: 'a' } } })
  const id = String(made.body['id'])
  for (const ref of [id, id.slice(0, 12)]) t.same((await call('GET', `/builders/${ref}`)).body, made.body)
  t.equal((await disks(app)).length, 1)
  t.equal((await call('GET', '/volumes')).text, '[]', 'the disk is nobody else\'s')
  const plain = await call('POST', '/builders', undefined)
  t.match(plain, { status: 201, body: { disk_size_gb: 1 } }, 'without a body too')
  t.notOk('name' in plain.body)
  const ids = async (query: string): Promise<string[]> => JSON.parse((await call('GET', `/builders${query}`)).text).map((builder: { id: string }) => builder.id)
  t.same(await ids(''), [id, plain.body['id']])
  t.same(await ids('?tags[team]=a'), [id])
  t.same(await ids('?limit=1'), [id])
  t.same(await ids(`?limit=1&after=${id}`), [plain.body['id']])
  t.equal((await call('DELETE', `/builders/${id}`)).status, 204)
  t.match(await call('GET', `/builders/${id}`), { status: 404, body: { code: 'not_found', message: `builder ${id} does not exist` } })
  t.match(await call('DELETE', `/builders/${id}`), { status: 404 })
  t.match(await call('POST', `/builders/${id}/prune`), { status: 404 })
  t.equal((await disks(app)).length, 1)
})

t.test('an id of one\'s own is unique, and wrong fields are refused by their names', async (t) => {
  const { call } = await startBuilds(t, { config: { maxBuilderDisk: '4GB' } })
  t.match(await call('POST', '/builders', { id: 'B_1.x' }), { status: 201, body: { id: 'B_1.x' } })
  t.match(await call('POST', '/builders', { id: 'B_1.x' }), { status: 409, body: { code: 'already_exists' } })
  const wrong: readonly [body: unknown, message: RegExp][] = [
    [{ id: '' }, /id/], [{ id: '../x' }, /id/], [{ id: 'a'.repeat(64) }, /id/], [{ name: '' }, /name/], [{ name: 'a\nb' }, /name/], [{ name: 7 }, /name/],
    [{ disk_size_gb: 0 }, /disk_size_gb/], [{ disk_size_gb: 1.5 }, /disk_size_gb/], [{ disk_size_gb: 5 }, /disk_size_gb: must be at most 4/], [{ tags: { 'a*': 'x' } }, /tags/], [{ size: 1 }, /size/], [[], /body/]
  ]
  for (const [body, message] of wrong) t.match(await call('POST', '/builders', body), { status: 400, body: { code: 'invalid_request', message } }, JSON.stringify(body).slice(0, 40))
})

t.test('a builder that is used, or waited for, is neither removed nor pruned', async (t) => {
  const app = await startBuilds(t)
  const { call, runner } = app
  await call('POST', '/builders', { id: 'b1' })
  const one = await app.build({ builder_id: 'b1' })
  const two = await app.build({ builder_id: 'b' })
  t.match(await app.get(one), { builder_id: 'b1' })
  t.match(await app.get(one.slice(0, 12)), { id: one }, 'a build by the beginning of its id')
  t.match(await call('DELETE', '/builders/b1'), { status: 409, body: { code: 'builder_busy', message: /has a build that waits for it/ }, headers: { 'x-should-retry': 'false' } })
  t.match(await app.get(two), { builder_id: 'b1' }, 'named by the beginning of its id')
  await call('DELETE', `/builds/${two.slice(0, 12)}`)
  t.match(await call('DELETE', '/builders/b1'), { status: 409, body: { code: 'builder_busy', message: `builder b1 is used by build ${one}` } })
  t.match(await call('POST', '/builders/b1/prune'), { status: 409, body: { code: 'builder_busy' } })
  t.match((await call('GET', '/builders/b1')).body, { status: 'ready', active_build_id: one })
  ;(await runner.begun(one)).finish()
  await app.become(one, 'ready')
  await until(async () => (await call('GET', '/builders/b1')).body['active_build_id'] === null)
  t.equal((await call('DELETE', '/builders/b1')).status, 204)
  t.match(await app.post({ source: SOURCE, builder_id: 'b1' }), { status: 404 })
})

t.test('a prune gives a builder a new disk, and builds wait for it', async (t) => {
  const app = await startBuilds(t)
  const { call, runner } = app
  const made = await call('POST', '/builders', { id: 'b1' })
  const before = await disks(app)
  const pruned = await call('POST', '/builders/b1/prune')
  t.match(pruned, { status: 202, body: { ...made.body, status: 'pruning' } })
  t.match(await call('POST', '/builders/b1/prune'), { status: 409, body: { code: 'builder_busy', message: /is being pruned/ } })
  const id = await app.build({ builder_id: 'b1' })
  const { job } = await runner.begun(id)
  t.match((await call('GET', '/builders/b1')).body, { status: 'ready', created_at: made.body['created_at'], active_build_id: id })
  t.not(before[0], `${job.cacheVolumeId ?? ''}.img`)
  t.same(await disks(app), [`${job.cacheVolumeId ?? ''}.img`])
})

t.test('a builder whose disk cannot be made again says so, and is pruned once more', async (t) => {
  const app = await startBuilds(t)
  const { call } = app
  await call('POST', '/builders', { id: 'b1' })
  const database = await openDatabase(app.dataDir)
  t.teardown(async () => { await database.destroy() })
  await database.schema.renameTable('volumes_volumes', 'elsewhere')
  await call('POST', '/builders/b1/prune')
  await until(async () => (await call('GET', '/builders/b1')).body['status'] === 'error')
  t.match(await app.post({ source: SOURCE, builder_id: 'b1' }), { status: 409, body: { code: 'builder_unusable', message: /builder_id: builder b1 has lost its disk/ } })
  await database.schema.renameTable('elsewhere', 'volumes_volumes')
  t.equal((await call('POST', '/builders/b1/prune')).status, 202)
  await until(async () => (await call('GET', '/builders/b1')).body['status'] === 'ready')
  t.equal((await disks(app)).length, 1)
})

t.test('what an earlier server was doing with builders is finished', async (t) => {
  const first = await startBuilds(t)
  for (const id of ['kept', 'pruning', 'deleting', 'creating']) await first.call('POST', '/builders', { id })
  const before = await disks(first)
  await first.app.stop()
  const database = await openDatabase(first.dataDir)
  for (const id of ['pruning', 'deleting', 'creating']) await database('builds_builders').where({ id }).update({ status: id })
  const rows: { id: string, volume_id: string }[] = await database('builds_builders').select('id', 'volume_id')
  const diskOf = (id: string): string => `${rows.find((row) => row.id === id)?.volume_id ?? ''}.img`
  // A disk that was made for a builder whose row does not name it any more, and one of a build, which is not the builders' affair.
  const [row]: Record<string, unknown>[] = await database('volumes_volumes').limit(1)
  await database('volumes_volumes').insert([{ ...row, id: 'cache-lost' }, { ...row, id: 'build-x' }])
  // The prune had come as far as to remove the old disk.
  await database('volumes_volumes').where({ id: diskOf('pruning').replace('.img', '') }).delete()
  await rm(join(first.dataDir, 'volumes/disks', diskOf('pruning')))
  const after = await startBuilds(t, { dataDir: first.dataDir })
  await until(async () => (await after.call('GET', '/builders/pruning')).body['status'] === 'ready')
  const listed: { id: string, status: string }[] = JSON.parse((await after.call('GET', '/builders')).text)
  t.same(listed.map(({ id, status }) => `${id} ${status}`), ['kept ready', 'pruning ready'])
  const now = await disks(after)
  t.equal(now.length, 2)
  t.ok(now.includes(diskOf('kept')))
  t.notOk(before.includes(now.find((name) => name !== diskOf('kept')) ?? ''))
  const volumes: { id: string }[] = await database('volumes_volumes').select('id')
  await database.destroy()
  t.ok(volumes.some(({ id }) => id === 'build-x'))
  t.notOk(volumes.some(({ id }) => id === 'cache-lost'))
  t.equal((await after.call('POST', '/builders', { id: 'creating' })).status, 201)
})
