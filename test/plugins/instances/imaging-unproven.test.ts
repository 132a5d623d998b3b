// A host whose VMM does not save and restore VMs: what needs that is refused by name and reason before anything is made, and the rest works.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { sourceIn } from './copies-app.ts'
import { until } from './crash.ts'
import { ScriptedHost } from './scripted.ts'
import { startWithTemplates } from './templates-app.ts'

const WHY = 'QEMU 10.0.13 does not save and restore VMs on this host: the VM could not be restored: Illegal RAM offset'

t.test('standby, a fork of a running instance and a copy of its memory get 501 with the reason, and nothing is made', async (t) => {
  const { call, host, copies, files, copiesFolder, folder, id, dataDir } = await sourceIn(t, 'Running')
  host.imagingRefusal = WHY
  const before = await readdir(folder(id))
  const steps: string[] = []
  host.onStep = (step) => { steps.push(step) }
  t.match(await call('POST', '/instances/web/standby'), { status: 501, body: { code: 'not_supported', message: `standby: ${WHY}` } })
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 501, body: { code: 'not_supported', message: `fork: ${WHY}` } })
  await t.rejects(copies.capture('web', 'Standby', files('one')), { code: 'not_supported', message: `snapshot: ${WHY}` })
  t.same(steps, [], 'the guest has not even been asked')
  t.same(await readdir(folder(id)), before)
  t.same(await readdir(copiesFolder), [])
  t.same(await readdir(join(dataDir, 'instances')), [id])
  t.match((await call('GET', '/instances/web')).body, { state: 'Running', state_error: null })
  t.match(await call('POST', '/instances/web/fork', { name: 'cold', from_running: true, target_state: 'Stopped' }), { status: 201 }, 'a copy of the disk needs no memory')
  const { runtimes } = (await call('GET', '/capabilities')).body
  t.match(Object(runtimes).find(({ name }: { name: string }) => name === 'qemu'), { available: true, reason: `a fake runs nothing; snapshots, standby, fork and instant-create are not available: ${WHY}` })
  t.notMatch(JSON.stringify(runtimes), /"(?:standby|fork|snapshots)"/)
  host.imagingRefusal = undefined
  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
})

t.test('an instance in standby stays there with its image, and what would start a VM on a memory is refused', async (t) => {
  const { call, host, copies, files, folder, id } = await sourceIn(t, 'Standby')
  const copy = await copies.capture('web', 'Standby', files('one'))
  host.imagingRefusal = WHY
  const before = await readdir(folder(id))
  t.match(await call('POST', '/instances/web/restore'), { status: 501, body: { message: `restore: ${WHY}` } })
  t.match(await call('POST', '/instances/web/fork', { name: 'twin' }), { status: 501, body: { message: `fork: ${WHY}` } })
  await t.rejects(copies.fork(copy, files('one'), { name: 'twin' }), { code: 'not_supported', message: `fork: ${WHY}` })
  await t.rejects(copies.restore('web', copy, files('one'), {}), { code: 'not_supported', message: `snapshot restore: ${WHY}` })
  t.same(await readdir(folder(id)), before)
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  host.imagingRefusal = undefined
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('instances boot cold there, and no template is made', async (t) => {
  const host = new ScriptedHost()
  host.imagingRefusal = WHY
  const app = await startWithTemplates(t, { host })
  for (const name of ['first', 'second']) {
    const id = await app.make(name)
    t.equal(await app.wayOf(id), 'by a boot')
    await app.waitFor(name, 'Running')
  }
  await until(async () => app.lines.some(({ why }) => why === WHY))
  t.equal(app.host.vms.length, 2)
  t.equal(await app.count('templates'), 0)
})
