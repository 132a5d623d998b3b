// Snapshots from their making to their end, on a scripted host.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ScriptedHost } from '../instances/scripted.ts'
import { startWithSnapshots, type SnapshotsApp } from './app.ts'
import { until } from '../instances/crash.ts'

async function withRunning (t: Test, fields: Record<string, unknown> = {}): Promise<SnapshotsApp & { id: string }> {
  const app = await startWithSnapshots(t)
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, id }
}

const ids = (body: unknown): unknown[] => Array.isArray(body) ? body.map(({ id }: { id: unknown }) => id) : []

t.test('a snapshot of a running instance has its disk and memory, and the instance goes on', async (t) => {
  const { call, host, id, take, folder, clock } = await withRunning(t, { tags: { of: 'the instance' } })
  const { status, body } = await call('POST', '/instances/web/snapshots', { kind: 'Standby', name: 'first', tags: { a: 'b' } })
  t.equal(status, 201)
  const { id: snapshot, size_bytes: size, uncompressed_size_bytes: memory, ...rest } = body
  t.match(snapshot, /^[a-z0-9]{24}$/)
  t.same(rest, {
    name: 'first', kind: 'Standby', source_instance_id: id, source_instance_name: 'web', source_hypervisor: 'qemu', created_at: new Date(clock.ms).toISOString(),
    tags: { a: 'b' }, compression_state: 'none', compression_error: null, compressed_size_bytes: null
  })
  t.ok(Number(size) > Number(memory) && Number(memory) > 0, 'its sizes are those on disk')
  t.match((await call('GET', '/instances/web')).body, { state: 'Running', has_snapshot: false })
  t.equal(host.vm.state.status, 'running')
  t.same((await readdir(folder(String(snapshot)))).sort(), ['memory', 'overlay.ext4', 'state'])
  t.equal((await stat(folder(String(snapshot)))).mode & 0o777, 0o700, 'nobody but the server can read memory')
  t.ok((await stat(join(folder(String(snapshot)), 'overlay.ext4'))).blocks * 512 < 2 ** 23, 'the disk is sparse')
  t.ok(host.held.has(`snapshot:${String(snapshot)}`))
  for (const ref of [String(snapshot), String(snapshot).slice(0, 12)]) t.same((await call('GET', `/snapshots/${ref}`)).body, body)
  const second = await take('web')
  t.match((await call('GET', `/snapshots/${second}`)).body, { name: null, tags: {} })
  t.notSame(second, snapshot)
})

t.test('a snapshot of an instance in standby leaves it there; one of a stopped instance is a disk', async (t) => {
  const { call, take, folder } = await withRunning(t)
  await call('POST', '/instances/web/standby')
  await take('web', 'Standby')
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Stopped' }), { status: 409, body: { code: 'invalid_state' } })
  await call('POST', '/instances/web/restore')
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Standby' }), { status: 409, body: { code: 'invalid_state' }, headers: { 'x-should-retry': 'false' } })
  const disk = await take('web', 'Stopped', { compression: { enabled: true } })
  t.match((await call('GET', `/snapshots/${disk}`)).body, { kind: 'Stopped', compression_state: 'none', uncompressed_size_bytes: null })
  t.same(await readdir(folder(disk)), ['overlay.ext4'])
  t.equal((await call('GET', '/snapshots')).text.match(/"id"/g)?.length, 2, 'what failed has left none')
})

t.test('names are unique for one source, and free again after a delete', async (t) => {
  const { call, take, make, waitFor } = await withRunning(t)
  const first = await take('web', 'Standby', { name: 'nightly' })
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Standby', name: 'nightly' }), { status: 409, body: { code: 'name_conflict' }, headers: { 'x-should-retry': 'false' } })
  await make('other')
  await waitFor('other', 'Running')
  await take('other', 'Standby', { name: 'nightly' })
  t.equal((await call('DELETE', `/snapshots/${first}`)).status, 204)
  await take('web', 'Standby', { name: 'nightly' })
  const both = await Promise.all(['same', 'same'].map(async (name) => (await call('POST', '/instances/web/snapshots', { kind: 'Standby', name })).status))
  t.same(both.sort(), [201, 409], 'of two at once, one gets it')
})

t.test('a list can be filtered and paged, and begins with the newest', async (t) => {
  const { call, take, id, clock } = await withRunning(t)
  const made: string[] = []
  for (const fields of [{ name: 'a', tags: { team: 'x' } }, { name: 'b', tags: { team: 'x', env: 'p' } }, {}]) {
    clock.ms++
    made.push(await take('web', 'Standby', fields))
  }
  await call('POST', '/instances/web/stop')
  clock.ms++
  made.push(await take('web', 'Stopped'))
  const list = async (query: string): Promise<unknown[]> => ids((await call('GET', `/snapshots${query}`)).body)
  t.same(await list(''), made.toReversed())
  t.same(await list('?sort=created_at'), made)
  t.same(await list('?name=b'), [made[1]])
  t.same(await list('?name=B'), [])
  t.same(await list('?kind=Stopped'), [made[3]])
  t.same(await list(`?source_instance_id=${id}&kind=Standby`), made.slice(0, 3).reverse())
  t.same(await list('?source_instance_id=web'), made.toReversed())
  t.same(await list('?tags[team]=x'), [made[1], made[0]])
  t.same(await list('?tags[team]=x&tags[env]=p'), [made[1]])
  t.same(await list(`?limit=2&after=${made[3] ?? ''}`), [made[2], made[1]])
  t.match((await call('GET', '/snapshots?limit=1')).headers['link'], /rel="next"/)
  t.match(await call('GET', '/snapshots?after=nothing'), { status: 400, body: { message: /after/ } })
})

t.test('a snapshot outlives its source, whose later life does not change it, and many machines are made of it', async (t) => {
  const { call, take, host, folder, waitFor } = await withRunning(t)
  const snapshot = await take('web', 'Standby', { name: 'kept' })
  const before = await readFile(join(folder(snapshot), 'memory'), 'utf8')
  await call('POST', '/instances/web/standby')
  await call('POST', '/instances/web/restore')
  await call('DELETE', '/instances/web')
  t.ok(host.held.has(`snapshot:${snapshot}`), 'the OCI image is kept')
  const forks = await Promise.all(['one', 'two', 'three'].map(async (name) => await call('POST', `/snapshots/${snapshot}/fork`, { name })))
  for (const [index, name] of ['one', 'two', 'three'].entries()) {
    t.match(forks[index], { status: 201, body: { name, state: 'Running', image: host.image.name, source: { kind: 'snapshot', id: snapshot, name: 'kept' } } })
    await waitFor(name, 'Running')
  }
  t.equal(new Set(forks.map(({ body }) => body['id'])).size, 3)
  t.same(host.vms.slice(-3).map(({ restoredFrom }) => restoredFrom?.memory), [before, before, before])
  t.equal(await readFile(join(folder(snapshot), 'memory'), 'utf8'), before, 'and it is as it was')
  t.match((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'one' })), { status: 409, body: { code: 'name_conflict' } })
  t.match((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'cold', target_state: 'Stopped', env: { MINE: 'yes' } })), { status: 201, body: { state: 'Stopped', has_snapshot: false, env: { MINE: 'yes' } } })
  t.match((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'asleep', target_state: 'Standby' })), { status: 201, body: { state: 'Standby', has_snapshot: true } })
  t.match((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'x', target_hypervisor: 'qemu' })), { status: 400, body: { code: 'invalid_request', message: /^target_hypervisor/ } })
})

t.test('a disk becomes a stopped machine, or one that boots', async (t) => {
  const { call, take, host, waitFor } = await withRunning(t)
  await call('POST', '/instances/web/stop')
  const snapshot = await take('web', 'Stopped')
  t.same((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'disk' })).body['source'], { kind: 'snapshot', id: snapshot }, 'one without a name')
  t.match(await call('POST', `/snapshots/${snapshot}/fork`, { name: 'boots', target_state: 'Running', target_hypervisor: 'qemu' }), { status: 201 })
  await waitFor('boots', 'Running')
  t.equal(host.vm.restoredFrom, undefined)
  t.match(await call('POST', `/snapshots/${snapshot}/fork`, { name: 'x', target_state: 'Standby' }), { status: 400, body: { code: 'invalid_request', message: /^target_state/ } })
  t.match(await call('POST', `/snapshots/${snapshot}/fork`, { name: 'x', target_hypervisor: 'vz' }), { status: 400, body: { message: /hypervisor-vz/ } })
})

t.test('a restore in place takes an instance back, and only its own snapshots can do that', async (t) => {
  const { call, take, make, waitFor, host, id } = await withRunning(t)
  const snapshot = await take('web')
  const url = `/instances/web/snapshots/${snapshot}/restore`
  t.match(await call('POST', url), { status: 409, body: { code: 'invalid_state' } }, 'not while it runs')
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', url), { status: 200, body: { id, name: 'web', state: 'Running', source: { kind: 'image', id: host.image.digest } } })
  t.match(host.vm.restoredFrom?.memory, /^memory of pid 4000000$/)
  await call('POST', '/instances/web/standby')
  t.match(await call('POST', url, { target_state: 'Standby' }), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', url, { target_state: 'Stopped' }), { status: 200, body: { state: 'Stopped', has_snapshot: false } })
  t.match(await call('POST', url, { target_hypervisor: 'qemu' }), { status: 400, body: { message: /^target_hypervisor/ } })
  await make('other')
  await waitFor('other', 'Running')
  await call('POST', '/instances/other/stop')
  t.match(await call('POST', `/instances/other/snapshots/${snapshot}/restore`), { status: 400, body: { code: 'invalid_request' } })
  t.match(await call('POST', '/instances/other/snapshots/nothing/restore'), { status: 404, body: { code: 'not_found' } })
  t.match(await call('POST', `/instances/nobody/snapshots/${snapshot}/restore`), { status: 404 })
})

t.test('what is deleted leaves nothing behind', async (t) => {
  const { call, take, dataDir, host } = await withRunning(t)
  const snapshot = await take('web')
  t.equal((await call('DELETE', `/snapshots/${snapshot}`)).status, 204)
  t.same(await readdir(join(dataDir, 'snapshots')), [])
  t.same([...host.held].filter((holder) => holder.startsWith('snapshot:')), [])
  for (const [method, url] of [['GET', ''], ['DELETE', ''], ['POST', '/fork']] as const) {
    t.match(await call(method, `/snapshots/${snapshot}${url}`, method === 'POST' ? { name: 'x' } : undefined), { status: 404, body: { code: 'not_found' } })
  }
})

t.test('snapshots are listed by their source: its id, its name or the beginning of its id, also when it is gone', async (t) => {
  const { call, id, take, make, waitFor } = await withRunning(t)
  const first = await take('web')
  const other = await make('other')
  await waitFor('other', 'Running')
  const second = await take('other')
  const of = async (ref: string): Promise<unknown[]> => ids(JSON.parse((await call('GET', `/snapshots?source_instance_id=${ref}`)).text))
  for (const ref of [id, 'web', id.slice(0, 12)]) t.same(await of(ref), [first], ref)
  t.same(await of('nobody'), [])
  await call('DELETE', '/instances/web')
  for (const ref of [id, 'web', id.slice(0, 12)]) t.same(await of(ref), [first], `${ref}, which is gone`)
  const again = await make('web')
  t.same(await of('web'), [], 'a name is first of all that of a living instance')
  t.same(await of(id), [first])
  t.same(await of(other), [second])
  t.notSame(again, id)
})

t.test('a snapshot has an id alone: neither its name nor another case of it is one', async (t) => {
  const { call, take } = await withRunning(t)
  const snapshot = await take('web', 'Standby', { name: 'named' })
  for (const ref of ['named', snapshot.toUpperCase(), `${snapshot}%20`, '..', '%2e%2e%2f']) t.equal((await call('GET', `/snapshots/${ref}`)).status, 404, ref)
})

t.test('a delete waits for the fork that reads, and who comes later finds nothing', async (t) => {
  const { call, take, host, folder } = await withRunning(t)
  const snapshot = await take('web')
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reading = new Promise<void>((resolve) => {
    host.onStep = async (step) => {
      if (step !== 'restore') return
      host.onStep = undefined
      resolve()
      await held
    }
  })
  const fork = call('POST', `/snapshots/${snapshot}/fork`, { name: 'reader' })
  await reading
  let deleted = false
  const removal = call('DELETE', `/snapshots/${snapshot}`).then((answer) => { deleted = true; return answer })
  const second = call('DELETE', `/snapshots/${snapshot}`)
  const late = call('POST', `/snapshots/${snapshot}/fork`, { name: 'late' })
  for (let turns = 0; turns < 20; turns++) await call('GET', '/snapshots')
  t.equal(deleted, false)
  t.same((await readdir(folder(snapshot))).length, 3, 'the files stay as long')
  go()
  t.match(await fork, { status: 201 })
  t.equal((await removal).status, 204)
  t.equal((await second).status, 404)
  t.equal((await late).status, 404)
})

t.test('a delete waits for no fork that is kept ready, and such forks end by themselves', async (t) => {
  const { call, make, waitFor, take, host, folder } = await startWithSnapshots(t, { config: { templates: { enabled: true, quiet: '10ms' } } })
  await make('web')
  await waitFor('web', 'Running')
  const snapshot = await take('web')
  t.equal((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'first' })).status, 201)
  const ready = (): number => host.vms.filter(({ phase, state }) => phase === 'asleep' && state.status === 'paused').length
  await until(() => ready() === 1)
  t.equal((await call('POST', `/snapshots/${snapshot}/fork`, { name: 'second' })).status, 201)
  await until(() => ready() === 1)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  host.onStep = async (step) => { if (step === 'kill') await held }
  t.equal((await call('DELETE', `/snapshots/${snapshot}`)).status, 204)
  t.notOk(existsSync(folder(snapshot)))
  go()
  await until(() => ready() === 0)
  t.match((await call('GET', '/instances/second')).body, { state: 'Running', source: { kind: 'snapshot', id: snapshot } })
})

t.test('a failure leaves nothing, and the source as it was', async (t) => {
  const { call, host, dataDir } = await withRunning(t)
  const clean = async (): Promise<void> => {
    t.same(await readdir(join(dataDir, 'snapshots')), [])
    t.same((await call('GET', '/snapshots')).body, [])
    t.same([...host.held].filter((holder) => holder.startsWith('snapshot:')), [])
    t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
    t.match(host.vm, { state: { status: 'running' }, phase: 'running' })
  }
  host.failures.set('capture', Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }))
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Standby', name: 'again' }), { status: 409, body: { code: 'insufficient_resources' }, headers: { 'x-should-retry': 'false' } })
  await clean()
  host.failures.set('capture', new Error('a fault of the VMM'))
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Standby', name: 'again' }), { status: 500 })
  await clean()
  host.failures.clear()
  t.equal((await call('POST', '/instances/web/snapshots', { kind: 'Standby', name: 'again' })).status, 201, 'its name is free')
})

for (const [algorithm, file] of [['zstd', 'memory.tar.zst'], ['lz4', 'memory.tar.lz4']] as const) {
  t.test(`memory is compressed with ${algorithm} in the background, and machines are made of it`, async (t) => {
    const { call, take, compressed, folder, host } = await withRunning(t)
    const memory = Buffer.alloc(4 * 2 ** 20, 'much the same ')
    // What the VM of the test keeps in its memory file.
    await writeFile(host.vm.spec.memory?.path ?? '', memory)
    const { body } = await call('POST', '/instances/web/snapshots', { kind: 'Standby', compression: { enabled: true, algorithm } })
    t.match(body, { compression: { enabled: true, algorithm, level: algorithm === 'zstd' ? 1 : 0 }, compression_state: 'compressing', compressed_size_bytes: null })
    const id = String(body['id'])
    const { body: after } = await compressed(id)
    // The raw memory goes right after the row says that it counts no more.
    await until(async () => !(await readdir(folder(id))).includes('memory'))
    t.same((await readdir(folder(id))).sort(), [file, 'overlay.ext4', 'state'].sort())
    const { size } = await stat(join(folder(id), file))
    t.match(after, { compressed_size_bytes: size, uncompressed_size_bytes: body['uncompressed_size_bytes'], compression_error: null })
    t.ok(size < memory.length / 20)
    t.equal(Number(after['size_bytes']), Number(body['size_bytes']) - Number(body['uncompressed_size_bytes']) + size)
    t.match(await call('POST', `/snapshots/${id}/fork`, { name: 'fork' }), { status: 201, body: { state: 'Running' } })
    t.ok(host.vm.restoredFrom?.memory.startsWith(memory.toString()))
    await take('fork')
    await call('DELETE', `/snapshots/${id}`)
    t.notOk((await readdir(join(folder(id), '..'))).includes(id))
  })
}

t.test('the instance and its policy decide about compression unless the request does', async (t) => {
  const { call, compressed, take } = await withRunning(t, { snapshot_policy: { compression: { enabled: true, algorithm: 'lz4', level: 3 } } })
  t.match((await compressed(await take('web'))).body, { compression: { enabled: true, algorithm: 'lz4', level: 3 } })
  const plain = await take('web', 'Standby', { compression: { enabled: false } })
  t.match((await call('GET', `/snapshots/${plain}`)).body, { compression_state: 'none' })
  t.notHas((await call('GET', `/snapshots/${plain}`)).body, 'compression')
})

t.test('snapshots and what is left of their compression outlive the server', async (t) => {
  const host = new ScriptedHost()
  const first = await startWithSnapshots(t, { host })
  await first.make('web')
  await first.waitFor('web', 'Running')
  const plain = await first.take('web')
  const packed = await first.take('web', 'Standby', { compression: { enabled: true } })
  await first.app.stop()
  const second = await startWithSnapshots(t, { host, dataDir: first.dataDir })
  t.same(ids((await second.call('GET', '/snapshots')).body), [plain, packed].sort((a, b) => a < b ? 1 : -1), 'of one moment, so by their ids')
  await second.compressed(packed)
  t.match(await second.call('POST', `/snapshots/${packed}/fork`, { name: 'fork' }), { status: 201 })
})
