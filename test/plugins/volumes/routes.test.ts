// Volumes by their routes: what is made, found, listed, refused and removed.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { tar } from '../../helpers/tar.ts'
import { openDatabase } from '../instances/database.ts'
import { EMPTY, startWithVolumes } from './app.ts'

const commands = createHostCommands()

t.test('a volume is made, found by id and name, and removed', async (t) => {
  const { call, dataDir, files } = await startWithVolumes(t)
  const made = await call('POST', '/volumes', { name: 'data', size_gb: 2, tags: { team: 'a' } })
  t.equal(made.status, 201)
  t.match(made.body, { name: 'data', size_gb: 2, tags: { team: 'a' }, attachments: [], created_at: /Z$/ })
  const id = String(made.body['id'])
  const disk = join(dataDir, 'volumes/disks', `${id}.img`)
  const { size, blocks, mode } = await stat(disk)
  t.equal(size, 2 * 2 ** 30)
  t.ok(blocks * 512 < 8 * 2 ** 20, `it takes ${blocks * 512} bytes`)
  t.equal(mode & 0o077, 0)
  await commands.run('e2fsck', ['-n', '-f', disk])
  for (const ref of [id, 'data', id.slice(0, 12)]) t.same((await call('GET', `/volumes/${ref}`)).body, made.body)
  for (const twin of ['twin-1', 'twin-2']) await call('POST', '/volumes', { id: twin, name: twin, size_gb: 1 })
  t.match(await call('GET', '/volumes/twin'), { status: 409, body: { code: 'ambiguous' } })
  for (const twin of ['twin-1', 'twin-2']) t.equal((await call('DELETE', `/volumes/${twin}`)).status, 204)
  t.equal((await call('DELETE', `/volumes/${id.slice(0, 12)}`)).status, 204)
  t.match(await call('DELETE', `/volumes/${id}`), { status: 404, body: { code: 'not_found' } })
  t.match(await call('GET', `/volumes/${id}`), { status: 404 })
  t.same(await files(), EMPTY)
})

t.test('a size may be a fraction that comes out as whole MiB', async (t) => {
  const { call, dataDir } = await startWithVolumes(t)
  for (const [name, size] of [['half', 0.5], ['more', 1.5], ['least', 0.0625]] as const) {
    const { status, body } = await call('POST', '/volumes', { name, size_gb: size })
    t.equal(status, 201)
    t.equal(body['size_gb'], size)
    t.same((await call('GET', `/volumes/${name}`)).body['size_gb'], size)
    const disk = join(dataDir, 'volumes/disks', `${String(body['id'])}.img`)
    t.equal((await stat(disk)).size, size * 2 ** 30)
    await commands.run('e2fsck', ['-n', '-f', disk])
  }
})

t.test('a name has upper case, dots and underscores as volume tools have them, and is there once, whatever its case', async (t) => {
  const { call, makeVolume } = await startWithVolumes(t)
  for (const name of ['PG_data.v1', '0', 'a-', `${'x'.repeat(62)}_`]) t.equal((await call('POST', '/volumes', { name, size_gb: 1 })).status, 201, name)
  t.match(await call('POST', '/volumes', { name: 'pg_DATA.v1', size_gb: 1 }), { status: 409, body: { code: 'name_conflict' }, headers: { 'x-should-retry': 'false' } })
  const both = await Promise.all([1, 2].map(async () => await call('POST', '/volumes', { name: 'race', size_gb: 1 })))
  t.same(both.map(({ status }) => status).sort(), [201, 409])
  t.equal((await call('DELETE', '/volumes/PG_data.v1')).status, 204)
  t.ok(await makeVolume('PG_data.v1'), 'a deleted volume gives its name back')
})

t.test('an id of one\'s own; older volumes may share a name', async (t) => {
  const { call, dataDir, makeVolume } = await startWithVolumes(t)
  t.equal(await makeVolume('data', { id: 'My_volume.1' }), 'My_volume.1')
  t.match(await call('POST', '/volumes', { name: 'other', size_gb: 1, id: 'My_volume.1' }), { status: 409, body: { code: 'already_exists' }, headers: { 'x-should-retry': 'false' } })
  const second = await makeVolume('data-2')
  const database = await openDatabase(dataDir)
  await database('volumes_volumes').where({ id: second }).update({ name: 'data', name_key: null })
  await database.destroy()
  t.match(await call('GET', '/volumes/data'), { status: 409, body: { code: 'ambiguous' } })
  t.equal((await call('GET', '/volumes/My_volume.1')).status, 200)
  await call('DELETE', `/volumes/${second}`)
  t.match((await call('GET', '/volumes/data')).body, { id: 'My_volume.1' })
})

t.test('no volume takes the place of another by an id that is its name, or a name that is its id', async (t) => {
  const { call, makeVolume, upload } = await startWithVolumes(t)
  const id = await makeVolume('db-data')
  t.match(await call('POST', '/volumes', { id: 'db-data', name: 'x', size_gb: 1 }), { status: 409, body: { code: 'already_exists', message: 'id: a volume with the id or the name db-data exists already' } })
  t.match(await upload(gzipSync(tar([{ path: 'f', content: 'x' }])), 'id=db-data&name=x&size_gb=1'), { status: 409, body: { code: 'already_exists' } })
  t.match(await call('POST', '/volumes', { name: id, size_gb: 1 }), { status: 409, body: { code: 'name_conflict', message: /^name: a volume with the name or the id / } })
  t.match((await call('GET', '/volumes/db-data')).body, { id })
  t.equal((await call('POST', '/volumes', { id: 'own', name: 'own', size_gb: 1 })).status, 201)
})

t.test('a volume whose id begins with its name is found by the name', async (t) => {
  const { call } = await startWithVolumes(t)
  t.equal((await call('POST', '/volumes', { id: 'web-1', name: 'web', size_gb: 1 })).status, 201)
  t.match(await call('GET', '/volumes/web'), { status: 200, body: { id: 'web-1' } })
  t.equal((await call('POST', '/volumes', { id: 'web-2', name: 'other', size_gb: 1 })).status, 201)
  t.match(await call('GET', '/volumes/web'), { status: 200, body: { id: 'web-1' } })
  t.match(await call('GET', '/volumes/web-'), { status: 409, body: { code: 'ambiguous' } })
})

t.test('the figures tell of the volumes as they are when they are read, also the first time', async (t) => {
  const lines: Record<string, unknown>[] = []
  const { call, makeVolume } = await startWithVolumes(t, { listen: true, lines })
  const port = lines.find(({ msg }) => msg === 'metrics served')?.['port']
  const figures = async (): Promise<string[]> => (await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text()).split('\n').filter((line) => /^berth_volumes(?:_bytes)?[ {]/.test(line)).sort()
  await makeVolume('data', { size_gb: 2 })
  t.match(await figures(), ['berth_volumes 1', /^berth_volumes_bytes\{kind="allocated"\} [1-9]\d+$/, `berth_volumes_bytes{kind="size"} ${2 * 2 ** 30}`])
  await call('DELETE', '/volumes/data')
  t.same(await figures(), ['berth_volumes 0', 'berth_volumes_bytes{kind="allocated"} 0', 'berth_volumes_bytes{kind="size"} 0'])
})

t.test('the same request with an idempotency key makes one volume', async (t) => {
  const { call } = await startWithVolumes(t)
  const twice = await Promise.all([1, 2].map(async () => await call('POST', '/volumes', { name: 'once', size_gb: 1 }, { 'idempotency-key': 'k1' })))
  t.ok(twice.some(({ status }) => status === 201))
  t.equal((await call('POST', '/volumes', { name: 'once', size_gb: 1 }, { 'idempotency-key': 'k1' })).body['name'], 'once')
  t.equal(JSON.parse((await call('GET', '/volumes')).text).length, 1)
})

t.test('an archive of another type is refused with the types that are taken', async (t) => {
  const { upload } = await startWithVolumes(t)
  const refused = await upload(Buffer.from('{}'), 'name=data&size_gb=1', { 'content-type': 'application/json' })
  t.match(refused, { status: 415, body: { code: 'unsupported_media_type', message: 'the request body must come with the content-type application/gzip, application/x-gzip, application/x-tar+gzip or application/octet-stream' } })
})

t.test('an archive sent again with its idempotency key and another query is refused', async (t) => {
  const { upload, call } = await startWithVolumes(t)
  const archive = gzipSync(tar([{ path: 'f', content: 'x' }]))
  t.equal((await upload(archive, 'name=one&size_gb=1', { 'idempotency-key': 'k' })).status, 201)
  t.match(await upload(archive, 'size_gb=1&name=one', { 'idempotency-key': 'k' }), { status: 201, headers: { 'idempotent-replayed': 'true' } })
  t.match(await upload(archive, 'name=two&size_gb=1', { 'idempotency-key': 'k' }), { status: 409, body: { code: 'idempotency_key_reused' } })
  t.equal(JSON.parse((await call('GET', '/volumes')).text).length, 1)
})

t.test('lists are by age, filtered by tags, and in pages', async (t) => {
  const { call, makeVolume } = await startWithVolumes(t)
  const ids = []
  for (const [name, tags] of Object.entries({ a: { team: 'x', env: 'p' }, b: { team: 'x' }, c: {} })) ids.push(await makeVolume(name, { tags }))
  const names = async (query: string): Promise<string[]> => {
    const found: { name: string }[] = JSON.parse((await call('GET', `/volumes${query}`)).text)
    return found.map(({ name }) => name)
  }
  t.same(await names(''), ['a', 'b', 'c'])
  t.same(await names('?tags[team]=x'), ['a', 'b'])
  t.same(await names('?tags[team]=x&tags[env]=p'), ['a'])
  t.same(await names('?name=b'), ['b'])
  t.same(await names('?name=nobody'), [])
  t.same(await names('?limit=2'), ['a', 'b'])
  t.match((await call('GET', '/volumes?limit=2')).headers['link'], /rel="next"/)
  t.same(await names(`?limit=2&after=${ids[1] ?? ''}`), ['c'])
  t.equal((await call('GET', '/volumes?after=nobody')).status, 400)
})

const good = { name: 'data', size_gb: 1 }
const wrong: readonly [body: unknown, message: RegExp][] = [
  [undefined, /body/],
  [{}, /name/],
  [{ name: 'data' }, /size_gb/],
  [{ size_gb: 1 }, /name/],
  [{ ...good, name: '' }, /name/],
  [{ ...good, name: '-data' }, /name/],
  [{ ...good, name: 'a b' }, /name/],
  [{ ...good, name: 'a'.repeat(64) }, /name/],
  [{ ...good, name: 7 }, /name/],
  [{ ...good, name: '../data' }, /name/],
  [{ ...good, size_gb: 0 }, /size_gb/],
  [{ ...good, size_gb: -1 }, /size_gb/],
  [{ ...good, size_gb: 1.1 }, /size_gb must be 0.0625 .*whole MiB/],
  [{ ...good, size_gb: 0.05 }, /size_gb must be 0.0625/],
  [{ ...good, size_gb: '1' }, /size_gb/],
  [{ ...good, size_gb: null }, /size_gb/],
  [{ ...good, size_gb: 5 }, /size_gb: must be at most 4/],
  [{ ...good, size_gb: 1e300 }, /size_gb/],
  [{ ...good, id: '' }, /id/],
  [{ ...good, id: '.hidden' }, /id/],
  [{ ...good, id: '../../etc/passwd' }, /id/],
  [{ ...good, id: 'a/b' }, /id/],
  [{ ...good, id: 'a b' }, /id/],
  [{ ...good, id: 'a\u0000' }, /id/],
  [{ ...good, id: 'a'.repeat(64) }, /id/],
  [{ ...good, tags: [] }, /tags/],
  [{ ...good, tags: { '': 'x' } }, /tags/],
  [{ ...good, tags: { a: 1 } }, /tags/],
  [{ ...good, tags: { a: 'x'.repeat(257) } }, /tags/],
  [{ ...good, tags: { 'a*': 'x' } }, /tags/],
  [{ ...good, tags: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, 'v'])) }, /tags/],
  [{ ...good, other: true }, /other/]
]

t.test('every wrong request for a volume is refused with the field', async (t) => {
  const { call, files } = await startWithVolumes(t, { sections: { volumes: { config: { maxSize: '4GB' } } } })
  for (const [body, message] of wrong) t.match(await call('POST', '/volumes', body), { status: 400, body: { code: 'invalid_request', message } }, JSON.stringify(body)?.slice(0, 60) ?? 'nothing')
  for (const query of ['?limit=0', '?limit=x', '?limit=1001', '?tags=x', '?other=1']) t.match(await call('GET', `/volumes${query}`), { status: 400, body: { code: 'invalid_request' } }, query)
  t.equal((await call('GET', `/volumes/${'a'.repeat(192)}`)).status, 400)
  t.same(await files(), EMPTY)
})

t.test('what an earlier server left half-made is removed at the start, and nothing else', async (t) => {
  const first = await startWithVolumes(t)
  const kept = await first.makeVolume('kept')
  await first.app.stop()
  const database = await openDatabase(first.dataDir)
  const [row]: Record<string, unknown>[] = await database('volumes_volumes')
  for (const status of ['creating', 'deleting']) await database('volumes_volumes').insert({ ...row, id: status, status, name_key: null })
  await database.destroy()
  for (const name of ['creating.img.making', 'creating.img', 'deleting.img']) await commands.run('touch', [join(first.dataDir, 'volumes/disks', name)])
  await commands.run('mkdir', ['-p', join(first.dataDir, 'volumes/unpacking/creating/deep'), join(first.dataDir, 'volumes/uses/nobody')])
  await commands.run('ln', [join(first.dataDir, 'volumes/disks', `${kept}.img`), join(first.dataDir, 'volumes/uses/nobody', `${kept}.img`)])
  const lines: Record<string, unknown>[] = []
  await commands.run('touch', [join(first.dataDir, 'volumes/disks/strange.img')])
  const after = await startWithVolumes(t, { host: first.host, dataDir: first.dataDir, lines })
  t.same(await after.files(), ['disks', `disks/${kept}.img`, 'disks/strange.img', 'unpacking', 'uses'].sort())
  t.ok(lines.some(({ names }) => JSON.stringify(names) === '["strange.img"]'))
  t.same(JSON.parse((await after.call('GET', '/volumes')).text).map(({ id }: { id: string }) => id), [kept])
})
