// The server dies between any two steps of a compression, or of the restore of a compressed image: the next one finds one whole memory, and nothing else.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, temporaryData } from './app.ts'
import { facing, running, type Running } from './compressing.ts'
import { copyOfData, crashAt, settledFiles, until } from './crash.ts'

const REST = ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log']
const compression = { enabled: true, algorithm: 'zstd', level: 3 }

type Step = 'compress' | 'compressed' | 'noted' | 'removed' | 'expand' | 'expanded' | 'marked'

/**
 * Runs `call` with a server that says its steps in the log, and takes all of the data at `step`, before anything else can happen: the log is written
 * synchronously. Returns that data as another server finds it.
 */
async function dataAt (t: Test, step: Step, call: (before: Running) => Promise<unknown>): Promise<{ before: Running, dataDir: string }> {
  const dataDir = join(await temporaryData(t), 'data')
  const seen = { from: '', taken: false }
  const before = await running(t, {
    onLine (line) {
      if (line['step'] !== step || seen.taken) return
      seen.taken = true
      mkdirSync(dataDir, { mode: 0o755 })
      execFileSync('cp', ['--archive', '--sparse=always', `${seen.from}/.`, dataDir])
    }
  })
  seen.from = before.dataDir
  await call(before)
  await until(async () => seen.taken)
  return { before, dataDir }
}

async function restart (t: Test, { before, dataDir }: { before: Running, dataDir: string }): Promise<Running> {
  return facing(await startApp(t, { host: before.host, dataDir }), before.id)
}

const compress = async ({ call }: Running): Promise<unknown> => await call('POST', '/instances/web/standby', { compression })

t.test('a server that starts after the clock was put back waits for no longer than was asked for', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby', { compression, compression_delay: '1h' })
  const file = join(before.folder, 'standby', 'image.json')
  await until(async () => JSON.parse(await readFile(file, 'utf8')).bootId === null)
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  t.equal(manifest.wanted.delayMs, 3_600_000)
  const dataDir = await copyOfData(t, before.dataDir)
  const copied = join(dataDir, 'instances', before.id, 'standby', 'image.json')
  await writeFile(copied, JSON.stringify({ ...manifest, wanted: { ...manifest.wanted, notBefore: Date.now() + 24 * 3_600_000, delayMs: 50 } }))
  const after = await restart(t, { before, dataDir })
  await after.compressed()
})

async function compressAndRestore (web: Running): Promise<void> {
  await compress(web)
  await web.compressed()
  await web.call('POST', '/instances/web/restore')
}

/** It can be restored, with the memory that it had, and leaves nothing when it is stopped. */
async function isWhole (t: Test, web: Running, memory: string): Promise<void> {
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(web.host.vm.restoredFrom?.memory, memory)
  t.same(await settledFiles(web.folder), ['memory', ...REST])
  t.match(await web.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped' } })
  t.same((await readdir(web.folder)).sort(), REST)
}

for (const step of ['compress', 'compressed', 'noted', 'removed'] as const) {
  t.test(`a compression that was cut off at "${step}" is finished`, async (t) => {
    const cut = await dataAt(t, step, compress)
    const memory = `memory of pid ${cut.before.host.vm.handle.pid}`
    const after = await restart(t, cut)
    t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
    await after.compressed()
    t.same(await after.image(), ['image.json', 'memory.tar.zst', 'state'])
    t.same((await readdir(after.folder)).sort(), [...REST, 'standby'].sort())
    await isWhole(t, after, memory)
  })

  t.test(`an image whose compression was cut off at "${step}" can be restored at once`, async (t) => {
    const cut = await dataAt(t, step, compress)
    await isWhole(t, await restart(t, cut), `memory of pid ${cut.before.host.vm.handle.pid}`)
  })
}

t.test('what a compression had written when it was cut off goes, also when it is not to begin again', async (t) => {
  const cut = await dataAt(t, 'compress', async ({ call }) => await call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm: 'lz4' } }))
  const folder = join(cut.dataDir, 'instances', cut.before.id, 'standby')
  await writeFile(join(folder, 'memory.tar.lz4'), 'half of it')
  await writeFile(join(folder, 'memory.tar.zst'), 'of another one')
  await writeFile(join(folder, '.image.json.some.tmp'), 'half of it')
  const after = await restart(t, cut)
  await after.compressed()
  t.same(await after.image(), ['image.json', 'memory.tar.lz4', 'state'])
  await isWhole(t, after, `memory of pid ${cut.before.host.vm.handle.pid}`)
})

for (const step of ['expand', 'expanded', 'marked'] as const) {
  t.test(`a restore of a compressed image that was cut off at "${step}" leaves it in standby, and compressed`, async (t) => {
    const cut = await dataAt(t, step, compressAndRestore)
    const memory = cut.before.host.vms.at(-1)?.restoredFrom?.memory ?? ''
    // At the first step nothing has been written yet; the tool is killed with the server, midway.
    if (step === 'expand') await writeFile(join(cut.dataDir, 'instances', cut.before.id, 'memory'), memory.slice(0, 5))
    const after = await restart(t, cut)
    t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
    t.same(await after.image(), ['image.json', 'memory.tar.zst', 'state'])
    t.notOk(await after.hasMemory())
    await isWhole(t, after, memory)
  })
}

async function compressedBefore (t: Test): Promise<Running> {
  const web = await running(t)
  await compress(web)
  await web.compressed()
  return web
}

t.test('one that was cut off before its VM ran leaves it in standby, and compressed', async (t) => {
  const before = await compressedBefore(t)
  const memory = `memory of pid ${before.host.vm.handle.pid}`
  const after = facing(await crashAt(t, before, 'restore', async () => await before.call('POST', '/instances/web/restore')), before.id)
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.same(await after.image(), ['image.json', 'memory.tar.zst', 'state'])
  t.notOk(await after.hasMemory())
  await isWhole(t, after, memory)
})

t.test('one that was cut off after its VM ran, which has ended before anybody knew of it, leaves it in standby as before', async (t) => {
  const before = await compressedBefore(t)
  const memory = `memory of pid ${before.host.vm.handle.pid}`
  const after = facing(await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances/web/restore'), async (t, options) => {
    before.host.vm.set({ status: 'gone' })
    return await startApp(t, options)
  }), before.id)
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: null, restore_error: /the server ended while/ })
  await isWhole(t, after, memory)
})

t.test('one whose guest nobody had woken yet is woken by the next server', async (t) => {
  const before = await compressedBefore(t)
  const after = facing(await crashAt(t, before, 'wake', async () => await before.call('POST', '/instances/web/restore')), before.id)
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  await until(async () => !(await readdir(after.folder)).some((name) => name.startsWith('standby')))
  t.same(await settledFiles(after.folder), ['memory', ...REST])
})

t.test('a fork of a compressed image that was cut off leaves nothing, and the image as it was', async (t) => {
  const before = await compressedBefore(t)
  const after = facing(await crashAt(t, before, 'restore', async () => await before.call('POST', '/instances/web/fork', { name: 'fork', target_state: 'Running' })), before.id)
  t.same(await readdir(join(after.dataDir, 'instances')), [before.id])
  t.same(await after.image(), ['image.json', 'memory.tar.zst', 'state'])
})
