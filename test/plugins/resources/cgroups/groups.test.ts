// Groups of VMMs: the limits that are written, and on a host that lets us, real groups with real processes.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { openGroups, type Groups } from '../../../../plugins/resources/cgroups/groups.ts'
import { findPlace, kernelFiles, type NoPlace, type Place } from '../../../../plugins/resources/cgroups/place.ts'
import { testFolder } from '../../../helpers/folder.ts'

const MIB = 2 ** 20
const settings = { mode: 'auto' as const, cpuPerVcpu: 0.5, cpuOverhead: 0.25, memoryOverheadBytes: 100 * MIB, pids: 64 }
const vm = { vcpus: 2, memoryBytes: 128 * MIB }

async function open (place: Place | NoPlace, lines: string[] = []): Promise<Groups> {
  return await openGroups(place, { settings, name: 'berth-host', log: pino({}, { write: (line) => { lines.push(line) } }) })
}

t.test('limits of version 2 are what its files take', async (t) => {
  const folder = testFolder(t, { 'berth-host': { 'cgroup.subtree_control': '' } })
  const groups = await open({ version: 2, folders: { cpu: folder, memory: folder, pids: folder } })
  t.same(groups.state, { active: true, version: 2, controllers: ['cpu', 'memory', 'pids'] })
  t.equal(await readFile(join(folder, 'berth-host/cgroup.subtree_control'), 'utf8'), '+cpu +memory +pids')
  await groups.make('vm', vm, 77)
  t.same(groups.foldersOf('vm'), [join(folder, 'berth-host/vm')])
  const text = async (file: string): Promise<string> => await readFile(join(folder, 'berth-host/vm', file), 'utf8')
  t.same([await text('cpu.max'), await text('memory.max'), await text('pids.max'), await text('cgroup.procs')], ['125000 100000', String(228 * MIB), '66', '77'])
})

t.test('a group that cannot be made is told in the log, and its VM has none', async (t) => {
  const folder = testFolder(t, { 'berth-host': { 'cgroup.subtree_control': '', vm: 'a file' } })
  const lines: string[] = []
  const groups = await open({ version: 2, folders: { cpu: folder } }, lines)
  await groups.make('vm', vm)
  t.same(groups.foldersOf('vm'), [])
  t.match(lines.join(''), /could not be made; it runs without the limits of one/)
})

t.test('without a place for groups nothing is made, and the reason is kept', async (t) => {
  const groups = await open({ reason: 'because' })
  await groups.make('vm', vm)
  t.same(groups.foldersOf('vm'), [])
  t.same(groups.state, { active: false, reason: 'because' })
  await groups.remove('vm')
  await groups.retainOnly(new Set())
  await groups.close()
  const closed = await open({ version: 2, folders: { cpu: '/proc/nowhere' } })
  t.match(closed.state, { active: false, reason: /^control groups cannot be made/ })
})

const parent = `/berth-groups-${randomBytes(4).toString('hex')}`
const place = await findPlace(parent, await kernelFiles())

t.test('real groups', 'version' in place ? {} : { skip: place.reason }, async (t) => {
  if (!('version' in place)) return
  const all = [...new Set([...Object.values(place.folders), ...place.accounting === undefined ? [] : [place.accounting]])]
  t.teardown(async () => { for (const folder of all) await rmdir(folder) })
  const groups = await open(place)
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  t.teardown(() => { child.kill('SIGKILL') })
  await groups.make('vm', vm, child.pid)
  const folders = groups.foldersOf('vm')
  t.equal(folders.length, all.length)
  for (const folder of folders) t.equal((await readFile(join(folder, 'cgroup.procs'), 'utf8')).trim(), String(child.pid))
  t.equal((await readFile(join(place.folders.pids ?? '', 'berth-host/vm/pids.max'), 'utf8')).trim(), '66')
  await groups.make('vm', { ...vm, vcpus: 4 })
  t.equal((await readFile(join(place.folders.pids ?? '', 'berth-host/vm/pids.max'), 'utf8')).trim(), '68', 'limits can be changed')
  for (const folder of all) await mkdir(join(folder, 'berth-host/orphan'))
  const next = await open(place)
  t.same(next.foldersOf('vm'), [], 'another server has made none')
  await next.retainOnly(new Set())
  for (const folder of all) {
    t.notOk(existsSync(join(folder, 'berth-host/orphan')), 'what is nobody\'s goes')
    t.ok(existsSync(join(folder, 'berth-host/vm')), 'and what a process is in stays')
  }
  await next.close()
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await next.remove('vm')
  await next.remove('vm')
  for (const folder of all) t.notOk(existsSync(join(folder, 'berth-host/vm')))
  await next.close()
  for (const folder of all) t.notOk(existsSync(join(folder, 'berth-host')))
})
