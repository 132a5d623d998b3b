// Backup and restore of a whole data folder: real database and files, of a server that runs; its VMs are scripted.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, lstat, mkdir, readdir, readFile, readlink, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { makeBackup } from '../../../core/backup/backup.ts'
import { runCommandLine } from '../../../core/cli/run.ts'
import { resolveCoreConfig } from '../../../core/config/resolve.ts'
import { sourceOfValue } from '../../../core/config/source.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { startApp, temporaryData, type TestApp } from './app.ts'
import { facing } from './compressing.ts'
import { eventually } from '../../helpers/eventually.ts'

t.setTimeout(300_000)
const MAIN = fileURLToPath(new URL('../../../core/main.js', import.meta.url))

interface Outcome { readonly code: number, readonly out: string, readonly error: string }

async function berth (dataDir: string, ...args: string[]): Promise<Outcome> {
  const out: string[] = []
  const error: string[] = []
  const code = await runCommandLine(args, { environment: { BERTH_DATA_DIR: dataDir }, print: (line) => { out.push(line) }, complain: (line) => { error.push(line) } })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

/** A server with an instance that runs, one in standby and one that is stopped. */
async function busyServer (t: Test): Promise<TestApp & { folder: string, close (): Promise<void> }> {
  const app = await startApp(t)
  for (const name of ['running', 'resting', 'stopped']) {
    await app.make(name)
    await app.waitFor(name, 'Running')
  }
  t.equal((await app.call('POST', '/instances/resting/standby')).status, 200)
  t.equal((await app.call('POST', '/instances/stopped/stop')).status, 200)
  return { ...app, folder: await temporaryData(t), close: async () => { await app.app.stop() } }
}

/** Files that take no space, and time to copy. */
async function addMany (dataDir: string, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    await writeFile(join(dataDir, `many-${number}`), 'x')
    await truncate(join(dataDir, `many-${number}`), 2 ** 21)
  }
}

async function states ({ call }: TestApp): Promise<string[]> {
  const list: { name: string, state: string }[] = JSON.parse((await call('GET', '/instances')).text)
  return list.map(({ name, state }) => `${name} ${state}`).sort()
}

t.test('a backup of a running server is put into another folder, where the next server has the same', async (t) => {
  const server = await busyServer(t)
  const { dataDir, folder, host } = server
  const disk = join(dataDir, 'extra/disk')
  await mkdir(join(dataDir, 'extra'), { mode: 0o750 })
  await writeFile(disk, 'begin')
  await truncate(disk, 2 ** 28)
  await appendFile(disk, 'end')
  await symlink('disk', join(dataDir, 'extra/link'))
  const socket = createServer().listen(join(dataDir, 'extra/socket'))
  await once(socket, 'listening')
  const made = await berth(dataDir, 'backup', join(folder, 'one'))
  t.match(made, { code: 0, out: /is a whole backup of .*files and the database/, error: '' })
  await new Promise((resolve) => { socket.close(resolve) })
  t.equal((await stat(join(folder, 'one'))).mode & 0o777, 0o700)
  t.ok((await stat(join(folder, 'one/data/extra/disk'))).blocks < 10_000, 'holes stay holes')
  t.notOk((await readdir(join(folder, 'one/data'))).some((name) => /berth\.db|lock\.db|server\.pid/.test(name)))
  t.same(await states(server), ['resting Standby', 'running Running', 'stopped Stopped'], 'the server goes on')

  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 1, error: /in use by another server/ }, 'not while the original runs here')
  for (const vm of host.vms) vm.set({ status: 'gone' })
  await server.close()
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 0, out: /is as .* was at/ })
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 1, error: /is not empty/ })
  const [was, is] = [await lstat(disk), await lstat(join(other, 'extra/disk'))]
  t.same([is.mode, is.uid, is.gid, is.size], [was.mode, was.uid, was.gid, was.size])
  t.ok(is.blocks < 10_000)
  t.equal((await stat(join(other, 'extra'))).mode & 0o777, 0o750)
  t.equal(await readlink(join(other, 'extra/link')), 'disk')
  const content = await readFile(join(other, 'extra/disk'))
  t.same([content.subarray(0, 5).toString(), content.subarray(-3).toString()], ['begin', 'end'])
  const next = await startApp(t, { host, dataDir: other })
  t.same(await states(next), ['resting Standby', 'running Stopped', 'stopped Stopped'])
  t.equal((await next.call('POST', '/instances/stopped/start')).status, 200)
  await next.waitFor('stopped', 'Running')
  t.match(host.vm.spec.directory, other)
  t.match(await next.call('POST', '/instances/resting/restore'), { status: 200, body: { state: 'Running' } })
  t.match(host.vm.spec.memory, { path: new RegExp(`^${other}/`) })
})

t.test('a backup that is not whole, damaged, hostile or beside the point is refused, and nothing is changed', async (t) => {
  const server = await busyServer(t)
  const { dataDir, folder } = server
  const whole = join(folder, 'whole')
  t.match(await berth(dataDir, 'backup', whole), { code: 0 })
  t.match(await berth(dataDir, 'backup', whole), { code: 1, error: /is not empty/ })
  t.match(await berth(dataDir, 'backup', join(dataDir, 'inside')), { code: 1, error: /in the data folder/ })
  t.match(await berth(join(folder, 'none'), 'backup', join(folder, 'x')), { code: 1, error: /no data folder/ })
  t.match(await berth(dataDir, 'backup'), { code: 2 })
  await server.close()
  t.match(await berth(dataDir, 'restore', whole), { code: 1, error: /is not empty/ })
  const changed = async (name: string, change: (place: string) => Promise<void>): Promise<Outcome> => {
    const place = join(folder, name)
    await cp(whole, place, { recursive: true, verbatimSymlinks: true })
    await change(place)
    return await berth(join(folder, 'target'), 'restore', place)
  }
  const manifestOf = async (place: string, change: (manifest: { entries: Record<string, unknown>[], format: number }) => void): Promise<void> => {
    const manifest = JSON.parse(await readFile(join(place, 'manifest.json'), 'utf8'))
    change(manifest)
    await writeFile(join(place, 'manifest.json'), JSON.stringify(manifest))
  }
  const file = (await readdir(join(whole, 'data/keys')))[0] ?? ''
  t.match(await changed('half', async (place) => { await rm(join(place, 'manifest.json')) }), { code: 1, error: /no whole backup/ })
  t.match(await changed('cut', async (place) => { await truncate(join(place, 'manifest.json'), 100) }), { code: 1, error: /cannot be read/ })
  t.match(await changed('later', async (place) => { await manifestOf(place, (manifest) => { manifest.format = 2 }) }), { code: 1, error: /cannot be read.*later version/ })
  t.match(await changed('lost', async (place) => { await rm(join(place, 'data/keys', file)) }), { code: 1, error: /damaged: .* is gone/ })
  t.match(await changed('bent', async (place) => { await appendFile(join(place, 'database.db'), 'x') }), { code: 1, error: /damaged: .*database.db is not what was written/ })
  for (const path of ['../out', '/out', 'keys/../../out', 'nowhere/out']) {
    t.match(await changed(path.replaceAll(/\W/g, '_'), async (place) => {
      await manifestOf(place, (manifest) => { manifest.entries.push({ ...manifest.entries.find(({ kind }) => kind === 'folder'), path }) })
    }), { code: 1, error: /none of its folders/ }, path)
  }
  t.notOk((await readdir(folder)).includes('target'))
})

t.test('a backup that is killed is no backup, and a restore that is killed is done again', async (t) => {
  const server = await busyServer(t)
  const { dataDir, folder, host } = server
  await addMany(dataDir, 60)
  const killed = async (dataDir: string, args: readonly string[], seen: () => Promise<unknown>): Promise<void> => {
    const child = spawn(process.execPath, [MAIN, ...args], { env: { PATH: process.env['PATH'], BERTH_DATA_DIR: dataDir }, stdio: 'ignore' })
    const ended = once(child, 'exit')
    await eventually('it has begun', async () => await seen().catch(() => false))
    child.kill('SIGKILL')
    const [code] = await ended
    t.equal(code, null, 'it was not over')
  }
  const half = join(folder, 'half')
  const begun = async (place: string): Promise<boolean> => (await readdir(place)).some((name) => name.startsWith('many-'))
  await killed(dataDir, ['backup', half], async () => await begun(join(half, 'data')))
  const target = join(folder, 'target')
  t.match(await berth(target, 'restore', half), { code: 1, error: /no whole backup/ })
  const whole = join(folder, 'whole')
  t.match(await berth(dataDir, 'backup', whole), { code: 0 })
  for (const vm of host.vms) vm.set({ status: 'gone' })
  await server.close()
  await killed(target, ['restore', whole], async () => await begun(target))
  await t.rejects(startApp(t, { host, dataDir: target }), /not whole/)
  t.match(await berth(target, 'restore', whole), { code: 0 })
  t.same(await states(await startApp(t, { host, dataDir: target })), ['resting Standby', 'running Stopped', 'stopped Stopped'])
})

t.test('what the server does during a backup is in it wholly or not at all', async (t) => {
  const server = await busyServer(t)
  const { dataDir, folder, host } = server
  await addMany(dataDir, 50)
  const made = berth(dataDir, 'backup', join(folder, 'one'))
  // So few that there is a moment of rest at last.
  for (let rounds = 0; rounds < 8; rounds++) {
    await server.call('POST', '/instances/resting/restore')
    await server.call('POST', '/instances/resting/standby')
    await server.make(`new-${rounds}`)
    await server.waitFor(`new-${rounds}`, 'Running')
    await server.call('DELETE', `/instances/new-${rounds}`)
  }
  t.match(await made, { code: 0 })
  for (const vm of host.vms) vm.set({ status: 'gone' })
  await server.close()
  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 0 })
  const lines: Record<string, unknown>[] = []
  const next = await startApp(t, { host, dataDir: other, lines })
  t.same(lines.filter(({ level }) => Number(level) >= 50), [])
  for (const state of await states(next)) t.match(state, / (Stopped|Standby)$/)
})

t.test('a memory that a backup has brought back is known as one on which no VM has run', async (t) => {
  const server = await startApp(t)
  const id = await server.make('resting')
  await server.waitFor('resting', 'Running')
  await server.call('POST', '/instances/resting/standby')
  const folder = await temporaryData(t)
  t.match(await berth(server.dataDir, 'backup', join(folder, 'one')), { code: 0 })
  await server.app.stop()
  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 0 })
  const { memoryMark } = JSON.parse(await readFile(join(other, 'instances', id, 'standby/image.json'), 'utf8'))
  t.equal(String((await stat(join(other, 'instances', id, 'memory'), { bigint: true })).mtimeNs), memoryMark)
})

t.test('an image that was not synced before its backup is whole once the backup was put back on another boot of a host; one of a boot before that is not', async (t) => {
  const server = await startApp(t)
  const ids = [await server.make('resting'), await server.make('older')]
  for (const name of ['resting', 'older']) {
    await server.waitFor(name, 'Running')
    await server.call('POST', `/instances/${name}/standby`)
  }
  await server.app.stop()
  const imageOf = (dataDir: string, id: string | undefined): string => join(dataDir, 'instances', String(id), 'standby/image.json')
  for (const [index, bootId] of ['boot of the backup', 'boot before it'].entries()) {
    const image = imageOf(server.dataDir, ids[index])
    await writeFile(image, JSON.stringify({ ...JSON.parse(await readFile(image, 'utf8')), bootId }))
  }
  const folder = await temporaryData(t)
  t.match(await berth(server.dataDir, 'backup', join(folder, 'one')), { code: 0 })
  const manifest = join(folder, 'one/manifest.json')
  await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), bootId: 'boot of the backup' }))
  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 0 })
  const next = await startApp(t, { host: server.host, dataDir: other })
  t.same(await states(next), ['older Stopped', 'resting Standby'])
  t.equal(JSON.parse(await readFile(imageOf(other, ids[0]), 'utf8')).bootId, null)
  t.notOk((await readdir(other)).includes('restored-boots'), 'a later image of that boot is not taken for restored')
})

t.test('a backup during which a memory image is compressed has its memory', async (t) => {
  const server = await startApp(t)
  const resting = facing(server, await server.make('resting'))
  await server.waitFor('resting', 'Running')
  await addMany(server.dataDir, 1)
  await server.call('POST', '/instances/resting/standby', { compression: { enabled: true }, compression_delay: '3s' })
  const commands = createHostCommands()
  const folder = await temporaryData(t)
  let seen = 0
  await makeBackup({
    config: resolveCoreConfig(sourceOfValue({}, folder), { BERTH_DATA_DIR: server.dataDir }),
    folder: join(folder, 'one'),
    commands: {
      async run (file, args, options) {
        // The first large file, which stands before all folders of instances.
        if (file === 'cp' && seen++ === 0) await resting.compressed()
        return await commands.run(file, args, options)
      }
    }
  })
  if (seen === 0) t.comment('this file system shares blocks, so no command copies a file, and the compression came later')
  await server.app.stop()
  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'one')), { code: 0 })
  const next = await startApp(t, { host: server.host, dataDir: other })
  t.same(await states(next), ['resting Standby'])
  t.match(await next.call('POST', '/instances/resting/restore'), { status: 200, body: { state: 'Running' } })
})
