// Compression of memory images: who decides about it, when it happens, that nobody waits for it, and that nothing is lost by it.
import { readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { InvalidState } from '../../../core/errors/common.ts'
import { startApp } from './app.ts'
import { compressing, facing, fillMemory, running, tools } from './compressing.ts'
import { settledFiles, until } from './crash.ts'

const REST = ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log']
const isRoot = process.getuid?.() === 0

for (const [algorithm, level, name] of [['zstd', 1, 'memory.tar.zst'], ['zstd', 19, 'memory.tar.zst'], ['lz4', 0, 'memory.tar.lz4'], ['lz4', 9, 'memory.tar.lz4']] as const) {
  t.test(`an image is compressed by ${algorithm} ${level} after the answer, and restored from that`, async (t) => {
    const web = await running(t)
    const { call, host, folder } = web
    const { pid } = host.vm.handle
    t.match(await call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm, level } }), { status: 200, body: { state: 'Standby', has_snapshot: true } })
    await web.compressed()
    t.same(await web.image(), ['image.json', name, 'state'])
    const { size } = await stat(join(folder, 'standby', name))
    t.match(await web.manifest(), { compressed: { algorithm, level, bytes: size, memoryBytes: `memory of pid ${pid}`.length } })
    await until(async () => /compression: done by \w+ \d+: .* of memory became/.test(await web.log()))
    t.match(await call('GET', '/instances/web'), { body: { state: 'Standby', has_snapshot: true } })

    t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running', has_snapshot: false } })
    t.match(host.vm.restoredFrom, { memory: `memory of pid ${pid}` })
    if (isRoot) t.equal((await stat(join(folder, 'memory'))).uid, host.vm.spec.identity?.uid, 'it is the VM\'s')
    t.same(await settledFiles(folder), ['memory', ...REST])
    t.match(await call('POST', '/instances/web/standby'), { status: 200 })
    t.match(await web.manifest(), { wanted: null }, 'what was asked for holds once')
    t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    t.match(host.vm.restoredFrom, { memory: `memory of pid ${pid}, gone on` })
  })
}

const zstd = (level: number): object => ({ enabled: true, algorithm: 'zstd', level })
const off = { enabled: false }
const precedence: readonly [string, object | undefined, object | undefined, object | undefined, object | null][] = [
  ['nobody says anything', undefined, undefined, undefined, null],
  ['the server', zstd(2), undefined, undefined, { algorithm: 'zstd', level: 2 }],
  ['the policy of the instance before the server', zstd(2), zstd(3), undefined, { algorithm: 'zstd', level: 3 }],
  ['the request before both', zstd(2), zstd(3), zstd(4), { algorithm: 'zstd', level: 4 }],
  ['the request alone', undefined, undefined, { enabled: true, algorithm: 'lz4' }, { algorithm: 'lz4', level: 0 }],
  ['a request without details', zstd(2), zstd(3), { enabled: true }, { algorithm: 'zstd', level: 1 }],
  ['a request for none', zstd(2), zstd(3), off, null],
  ['a policy of none', zstd(2), off, undefined, null],
  ['a request against a policy of none', undefined, off, zstd(5), { algorithm: 'zstd', level: 5 }]
]
for (const [who, server, policy, request, expected] of precedence) {
  t.test(`who decides: ${who}`, async (t) => {
    const web = await running(t, { config: server === undefined ? {} : { compression: server } }, policy === undefined ? {} : { snapshot_policy: { compression: policy } })
    const before = Date.now()
    t.match(await web.call('POST', '/instances/web/standby', { compression_delay: '1h', ...(request === undefined ? {} : { compression: request }) }), { status: 200 })
    const { wanted } = await web.manifest()
    if (expected === null) return t.equal(wanted, null)
    t.match(wanted, expected)
    const { notBefore } = Object(wanted)
    t.ok(notBefore >= before + 3_600_000 && notBefore <= Date.now() + 3_600_000, 'an hour from now')
    t.ok(await web.hasMemory())
  })
}

t.test('a server does not start with a level that its algorithm does not know', async (t) => {
  await t.rejects(startApp(t, { config: { compression: { enabled: true, algorithm: 'lz4', level: 10 } } }), /compression\.level.*lz4 takes 0 to 9/)
  await t.rejects(startApp(t, { config: { compression: { enabled: true, algorithm: 'zstd', level: 0 } } }), /compression\.level.*zstd takes 1 to 19/)
})

t.test('the delay is kept', async (t) => {
  const web = await running(t)
  const began = Date.now()
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true }, compression_delay: '400ms' })
  await web.compressed()
  // The times of files are those of the kernel's last tick, which is up to 10 ms back.
  t.ok((await stat(join(web.folder, 'standby', 'memory.tar.zst'))).birthtimeMs >= began + 390)
})

t.test('the delay of the policy is kept, unless the request says another', async (t) => {
  const policy = { compression: { enabled: true }, standby_compression_delay: '1h' }
  const web = await running(t, {}, { snapshot_policy: policy })
  t.match((await web.call('GET', '/instances/web')).body, { snapshot_policy: { standby_compression_delay: '1h' } })
  const before = Date.now()
  await web.call('POST', '/instances/web/standby')
  const { notBefore } = Object((await web.manifest()).wanted)
  t.ok(notBefore >= before + 3_600_000 && notBefore <= Date.now() + 3_600_000)
  await web.call('POST', '/instances/web/restore')
  await web.call('POST', '/instances/web/standby', { compression_delay: '0s' })
  await web.compressed()
})

t.test('a restore during the delay uses the image as it is', async (t) => {
  const web = await running(t)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true }, compression_delay: '200ms' })
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  await new Promise((resolve) => setTimeout(resolve, 400))
  t.same(await settledFiles(web.folder), ['memory', ...REST])
  t.notMatch(await web.log(), /compression|expanded/)
  t.match(await web.call('POST', '/instances/web/standby', { compression: { enabled: true } }), { status: 200 })
  await web.compressed()
})

t.test('a restore during the compression stops it and does not wait for it', async (t) => {
  const web = await running(t)
  await fillMemory(web)
  await web.call('POST', '/instances/web/standby', { compression: zstd(19) })
  await compressing(web)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.same(await tools(web.folder), [], 'nothing works on it any more')
  t.same(await settledFiles(web.folder), ['memory', ...REST])
  t.notMatch(await web.log(), /compression|expanded/)
  web.host.onStep = undefined
  t.match(await web.call('POST', '/instances/web/standby', { compression: zstd(1) }), { status: 200 })
  await web.compressed()
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a restore that fails during the compression lets it begin again', async (t) => {
  const web = await running(t)
  await web.call('POST', '/instances/web/standby', { compression: zstd(1), compression_delay: '600ms' })
  web.host.failures.set('restore', InvalidState('its cpu is "a"'))
  t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'restore_failed' } })
  await web.compressed()
  t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'restore_failed', message: /stays in Standby: its cpu/ } })
  t.same(await web.image(), ['image.json', 'memory.tar.zst', 'state'], 'the image is compressed still')
  t.notOk(await web.hasMemory(), 'and not there twice')
  web.host.failures.clear()
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a fork during the compression uses the image as it is, and the compression goes on', async (t) => {
  const web = await running(t)
  await fillMemory(web, 16)
  await web.call('POST', '/instances/web/standby', { compression: zstd(12) })
  await compressing(web)
  web.host.onStep = undefined
  t.match(await web.call('POST', '/instances/web/fork', { name: 'fork', target_state: 'Running' }), { status: 201, body: { state: 'Running' } })
  t.equal((await stat(join(web.dataDir, 'instances', web.id, 'overlay.ext4'))).isFile(), true)
  await web.call('DELETE', '/instances/web')
  t.same(await tools(web.folder), [])
  t.same((await readdir(join(web.dataDir, 'instances'))).length, 1)
})

t.test('a compressed instance is forked, to run and to stand by, and stays as it is', async (t) => {
  const web = await running(t, {}, { snapshot_policy: { compression: { enabled: true, algorithm: 'lz4' } } })
  const { pid } = web.host.vm.handle
  await web.call('POST', '/instances/web/standby')
  await web.compressed()
  t.match(await web.call('POST', '/instances/web/fork', { name: 'runs', target_state: 'Running' }), { status: 201, body: { state: 'Running' } })
  t.match(web.host.vm.restoredFrom, { memory: `memory of pid ${pid}` })
  const { body } = await web.call('POST', '/instances/web/fork', { name: 'rests' })
  t.match(body, { state: 'Standby' })
  const fork = facing(web, String(body['id']))
  await fork.compressed()
  t.same(await fork.image(), ['image.json', 'memory.tar.lz4', 'state'], 'its policy holds for the fork too')
  t.match(await web.call('POST', '/instances/rests/restore'), { status: 200, body: { state: 'Running' } })
  t.match(web.host.vm.restoredFrom, { memory: `memory of pid ${pid}` })
  t.match(web.host.vm.wakes, [{ hostname: 'rests', newMachine: true }])
  t.same(await web.image(), ['image.json', 'memory.tar.lz4', 'state'])
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('an instance is deleted during its compression, and when it is compressed', async (t) => {
  const web = await running(t)
  await fillMemory(web)
  await web.call('POST', '/instances/web/standby', { compression: zstd(19) })
  await compressing(web)
  t.equal((await web.call('DELETE', '/instances/web')).status, 204)
  t.same(await tools(web.folder), [])
  t.same(await readdir(join(web.dataDir, 'instances')), [])
  web.host.onStep = undefined
  const again = facing(web, await web.make('again'))
  await web.waitFor('again', 'Running')
  await web.call('POST', '/instances/again/standby', { compression: zstd(1) })
  await again.compressed()
  t.equal((await web.call('DELETE', '/instances/again')).status, 204)
  t.same(await readdir(join(web.dataDir, 'instances')), [])
})

t.test('a compression does not keep the server from stopping, and goes on with the next one', async (t) => {
  const before = await running(t)
  await fillMemory(before)
  await before.call('POST', '/instances/web/standby', { compression: zstd(19) })
  await compressing(before)
  await before.app.stop()
  t.same(await tools(before.folder), [])
  t.same(await before.image(), ['image.json', 'state'])
  const after = facing(await startApp(t, { host: before.host, dataDir: before.dataDir }), before.id)
  await compressing(after)
  t.equal((await after.call('DELETE', '/instances/web')).status, 204)
})

t.test('images are compressed one at a time', async (t) => {
  const web = await running(t)
  await fillMemory(web)
  await web.call('POST', '/instances/web/standby', { compression: zstd(19) })
  await compressing(web)
  web.host.onStep = undefined
  const other = facing(web, await web.make('other'))
  await web.waitFor('other', 'Running')
  await web.call('POST', '/instances/other/standby', { compression: zstd(1) })
  await until(async () => (await other.manifest())['bootId'] === null)
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.same(await other.image(), ['image.json', 'state'])
  await web.call('DELETE', '/instances/web')
  await other.compressed()
})

t.test('a damaged image is not restored from, and says why', async (t) => {
  const web = await running(t)
  await web.call('POST', '/instances/web/standby', { compression: zstd(1) })
  await web.compressed()
  const path = join(web.folder, 'standby', 'memory.tar.zst')
  const whole = await readFile(path)
  const damages: readonly [string, () => Promise<void>][] = [
    ['cut off', async () => { await truncate(path, whole.length - 3) }],
    ['another one', async () => { await writeFile(path, 'x'.repeat(100)) }],
    ['gone', async () => { await rm(path) }]
  ]
  for (const [what, damage] of damages) {
    await damage()
    t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'restore_failed', message: /stays in Standby: the compressed memory cannot be expanded/ } }, what)
    t.match((await web.call('GET', '/instances/web')).body, { state: 'Standby' })
    t.notOk(await web.hasMemory())
    t.match(await web.call('POST', '/instances/web/fork', { name: 'fork' }), { status: 409, body: { code: 'memory_damaged' } }, what)
  }
  t.equal((await readdir(join(web.dataDir, 'instances'))).length, 1)
  await writeFile(path, whole)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})
