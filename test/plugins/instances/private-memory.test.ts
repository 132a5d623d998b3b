// Instances that share the memory file of what they were made of: what stands in their folders, and who may go before whom.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { logs } from './copies-app.ts'
import { until } from './crash.ts'
import { ScriptedHost } from './scripted.ts'
import { clonesIn } from './sharing-app.ts'

async function files (folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => !logs.includes(name)).sort()
}

t.test('a clone runs on its template\'s file, and its image is what differs from that', async (t) => {
  const app = await clonesIn(t)
  const { id, host } = app
  const folder = app.folder(id)
  t.same(host.vm.spec.memory, { path: join(folder, 'base/memory'), sharing: 'private' })
  t.same(await files(folder), ['base'])
  const { ino, nlink, mode } = await stat(join(folder, 'base/memory'))
  t.equal(ino, (await stat(join(app.dataDir, 'templates', app.template, 'memory'))).ino)
  t.equal(nlink, 2)
  t.equal(mode & 0o777, 0o444)
  t.equal((await stat(join(folder, 'base'))).mode & 0o777, 0o700)
  for (const round of [1, 2]) {
    t.match(await app.call('POST', '/instances/clone/standby'), { status: 200, body: { state: 'Standby', has_snapshot: true } })
    t.same(await files(folder), ['base', 'standby'])
    t.same((await readdir(join(folder, 'standby'))).sort(), ['changes', 'image.json', 'state'])
    t.match(JSON.parse(await readFile(join(folder, 'standby/image.json'), 'utf8')), { version: 2, onBase: { changes: true }, memoryMark: '' })
    // The template goes; what it was made for has the file.
    if (round === 1) t.match(await app.call('DELETE', `/templates/${app.template}`), { status: 204 })
    t.match(await app.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
    t.same(host.vm.spec.memory, { path: join(folder, 'base/memory'), sharing: 'private', changes: join(folder, 'standby.taken/changes') })
    await until(async () => (await files(folder)).join() === 'base')
  }
  t.match(await app.call('POST', '/instances/clone/stop'), { status: 200 })
  t.same(await files(folder), [])
})

t.test('forks share the base of their source, whether it runs or rests, and outlive it', async (t) => {
  const app = await clonesIn(t)
  const base = (await stat(join(app.folder(app.id), 'base/memory'))).ino
  const made: string[] = []
  const fork = async (name: string, target: string): Promise<void> => {
    const { status, body } = await app.call('POST', '/instances/clone/fork', { name, from_running: true, target_state: target })
    t.equal(status, 201)
    made.push(String(body['id']))
  }
  await fork('of-running', 'Running')
  t.match(app.host.vm, { restoredFrom: { memory: /^memory of pid/ }, wakes: [{ hostname: 'of-running', newMachine: true }] })
  await fork('of-running-asleep', 'Standby')
  await app.call('POST', '/instances/clone/standby')
  await fork('of-resting', 'Running')
  await fork('of-resting-asleep', 'Standby')
  for (const id of made) {
    t.equal((await stat(join(app.folder(id), 'base/memory'))).ino, base)
    t.notOk(existsSync(join(app.folder(id), 'memory')))
  }
  await app.call('DELETE', '/instances/clone')
  await app.call('DELETE', `/templates/${app.template}`)
  for (const name of ['of-running-asleep', 'of-resting-asleep']) t.match(await app.call('POST', `/instances/${name}/restore`), { status: 200, body: { state: 'Running' } })
  for (const name of ['of-running', 'of-resting']) t.match(await app.call('POST', `/instances/${name}/standby`), { status: 200, body: { state: 'Standby' } })
})

t.test('an image that is to be compressed is whole, and so is that of an instance whose policy asks for it', async (t) => {
  const app = await clonesIn(t)
  t.match(await app.call('POST', '/instances/clone/standby', { compression: { enabled: true, algorithm: 'lz4' } }), { status: 200 })
  const image = JSON.parse(await readFile(join(app.folder(app.id), 'standby/image.json'), 'utf8'))
  t.notOk('onBase' in image)
  t.match(await app.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
  t.match(app.host.vm.spec.memory, { sharing: 'shared' })
  t.notOk(existsSync(join(app.folder(app.id), 'base')), 'a base that is of no use any more is given up')
  const policy = await app.make('policy', { snapshot_policy: { compression: { enabled: true } } })
  t.match(app.host.vm.spec.memory, { path: join(app.folder(policy), 'memory'), sharing: 'shared' })
})

t.test('a VMM that cannot share memory, and a server that is told not to, work with files of their own', async (t) => {
  const unable = await clonesIn(t, { host: Object.assign(new ScriptedHost(), { sharesMemory: false }) })
  t.match(unable.host.vm.spec.memory, { path: join(unable.folder(unable.id), 'memory'), sharing: 'shared' })
  const told = await clonesIn(t, { config: { privateMemory: false } })
  t.match(told.host.vm.spec.memory, { path: join(told.folder(told.id), 'memory'), sharing: 'shared' })
  t.match(await told.call('POST', '/instances/clone/standby'), { status: 200 })
  t.same(await files(told.folder(told.id)), ['memory', 'standby'])
})

t.test('a spare VM is on its template\'s file, too, and the instance that it becomes saves what differs', async (t: Test) => {
  const app = await clonesIn(t, { config: { templates: { spares: 1 } } })
  const { body } = await app.call('POST', '/instances', { name: 'from-spare', image: 'test', overlay_size: '32MB' })
  const id = String(body['id'])
  t.equal(await app.wayOf(id), 'from a spare VM')
  await app.waitFor('from-spare', 'Running')
  t.same(await files(app.folder(id)), ['base'])
  t.match(await app.call('POST', '/instances/from-spare/standby'), { status: 200 })
  t.same(await files(app.folder(id)), ['base', 'standby'])
})
