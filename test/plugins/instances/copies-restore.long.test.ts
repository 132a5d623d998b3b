// Instances that are put back to copies of them, on a scripted host: from each state to each state, and what stays.
import { appendFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LiveInstance } from '../../../plugins/instances/model/live-instance.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { diskMark, logs, sourceIn, startWithCopies, withPlainDriver } from './copies-app.ts'
import { settledFiles, until } from './crash.ts'
import { failingOnce } from './crash-points.ts'

const restores = [
  { kind: 'Standby', before: 'Standby', target: undefined, state: 'Running' },
  { kind: 'Standby', before: 'Stopped', target: 'Running', state: 'Running' },
  { kind: 'Standby', before: 'Standby', target: 'Standby', state: 'Standby' },
  { kind: 'Standby', before: 'Stopped', target: 'Standby', state: 'Standby' },
  { kind: 'Standby', before: 'Standby', target: 'Stopped', state: 'Stopped' },
  { kind: 'Stopped', before: 'Standby', target: undefined, state: 'Stopped' },
  { kind: 'Stopped', before: 'Stopped', target: 'Running', state: 'Running' },
  { kind: 'Stopped', before: 'Standby', target: 'Running', state: 'Running' }
] as const

for (const { kind, before, target, state } of restores) {
  t.test(`an instance in ${before} is put back to a copy of kind ${kind}, to be ${target ?? 'as usual'}`, async (t) => {
    const app = await sourceIn(t, kind === 'Standby' ? 'Running' : 'Stopped')
    const { call, copies, files, folder, host, id, waitFor } = app
    const first = (await call('GET', '/instances/web')).body
    const copy = await copies.capture('web', kind, files('one'))
    const memory = kind === 'Standby' ? await readFile(files('one').memory.path, 'utf8') : undefined
    if (kind === 'Stopped') await call('POST', '/instances/web/start', { cmd: ['later'] })
    await waitFor('web', 'Running')
    await appendFile(join(folder(id), 'overlay.ext4'), ', second')
    await call('POST', `/instances/web/${before === 'Standby' ? 'standby' : 'stop'}`)
    const user = host.vm.spec.identity?.uid
    host.vm.wakes.length = 0
    const view = await copies.restore('web', copy, files('one'), target === undefined ? {} : { targetState: target })
    t.match(view, { id, name: 'web', created_at: first['created_at'], tags: { team: 'x' }, exit_code: null })
    t.match((await waitFor('web', state)).body, { state })
    t.match((await call('GET', '/instances/web')).body, { state, has_snapshot: state === 'Standby' })
    t.equal(await diskMark(join(folder(id), 'overlay.ext4')), 'first')
    const withMemory = state === 'Running' ? ['memory'] : state === 'Standby' ? ['memory', 'standby'] : []
    t.same(await settledFiles(folder(id)), [...logs, ...withMemory].sort())
    if (state === 'Standby') t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    if (state === 'Stopped') t.match(await call('POST', '/instances/web/start'), { status: 200 })
    await waitFor('web', 'Running')
    if (memory !== undefined && state !== 'Stopped') {
      t.equal(app.host.vm.restoredFrom?.memory, memory)
      t.same(host.vm.wakes, [{}], 'it is the same machine')
    } else {
      t.same(host.vm.workload?.argv, ['/bin/tool', 'x'], 'what was overridden later is forgotten')
      t.notOk(host.vm.workload?.newMachine)
    }
    t.equal(host.vm.spec.identity?.uid, user)
    t.equal(host.held.size, 1)
    t.equal(await diskMark(files('one').overlay), 'first')
  })
}

t.test('a copy can be restored again and again', async (t) => {
  const app = await sourceIn(t, 'Running')
  const { call, copies, files } = app
  const copy = await copies.capture('web', 'Standby', files('one'))
  const memory = await readFile(files('one').memory.path, 'utf8')
  for (let time = 0; time < 3; time++) {
    await call('POST', '/instances/web/standby')
    t.match(await copies.restore('web', copy, files('one'), {}), { state: 'Running' })
    t.equal(app.host.vm.restoredFrom?.memory, memory)
  }
})

t.test('a fork that nobody has told who it is stays so in its copies', async (t) => {
  const { call, copies, files, host, waitFor } = await sourceIn(t, 'Running')
  await call('POST', '/instances/web/fork', { name: 'asleep', from_running: true, target_state: 'Standby' })
  await call('POST', '/instances/web/fork', { name: 'stopped', from_running: true, target_state: 'Stopped' })
  const asleep = await copies.capture('asleep', 'Standby', files('asleep'))
  const stopped = await copies.capture('stopped', 'Stopped', files('stopped'))
  await call('POST', '/instances/asleep/restore')
  await call('POST', '/instances/asleep/standby')
  await call('POST', '/instances/stopped/start')
  await waitFor('stopped', 'Running')
  await call('POST', '/instances/stopped/stop')
  await copies.restore('asleep', asleep, files('asleep'), {})
  t.same(host.vm.wakes, [{ hostname: 'asleep', newMachine: true }])
  await copies.restore('stopped', stopped, files('stopped'), { targetState: 'Running' })
  await waitFor('stopped', 'Running')
  t.equal(host.vm.workload?.newMachine, true)
})

t.test('an instance is put back only to a copy of its own, and only at rest', async (t) => {
  const { call, copies, files, make, waitFor } = await sourceIn(t, 'Running')
  const copy = await copies.capture('web', 'Standby', files('one'))
  await t.rejects(copies.restore('web', copy, files('one'), {}), { code: 'invalid_state', message: /^snapshot restore: .* Stopped or Standby .*Running/ })
  await make('other')
  await waitFor('other', 'Running')
  await call('POST', '/instances/other/stop')
  await t.rejects(copies.restore('other', copy, files('one'), {}), { code: 'invalid_request', message: /other/ })
  await t.rejects(copies.restore('nobody', copy, files('one'), {}), { code: 'not_found' })
  await call('POST', '/instances/web/stop')
  await t.rejects(copies.restore('web', { ...copy, kind: 'Stopped' }, files('one'), { targetState: 'Standby' }), { code: 'invalid_request', message: /^target_state: / })
  await t.rejects(copies.restore('web', copy, files('one'), { hypervisor: 'qemu' }), { code: 'invalid_request', message: /^target_hypervisor: / })
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped' })
})

t.test('an instance is not put back to a hypervisor that cannot have it, and stays as it is', async (t) => {
  const { call, copies, crowded, files, folder, host, modest, wanting } = await withPlainDriver(t)
  for (const [field, copy] of wanting) {
    const { body: before } = await call('GET', '/instances/web')
    const disk = join(folder(before['id']), 'overlay.ext4')
    await appendFile(disk, 'second')
    for (const targetState of ['Stopped', 'Running'] as const) {
      await t.rejects(copies.restore('web', copy, files('web'), { hypervisor: 'plain', targetState }), { code: 'not_supported', kind: 'unsupported', message: `${field}: the hypervisor plain cannot do that` })
    }
    t.same((await call('GET', '/instances/web')).body, before)
    t.match(await diskMark(disk), /second/)
    t.match(await call('POST', '/instances/web/start'), { status: 200, body: { hypervisor: 'qemu' } })
    await call('POST', '/instances/web/stop')
  }
  await t.rejects(copies.restore('web', crowded, files('web'), { hypervisor: 'plain' }), { code: 'invalid_request', kind: 'invalid', message: 'vcpus: must be at most 8 with the hypervisor plain' })
  t.equal(host.held.size, 1)
  t.match(await copies.restore('web', modest, files('web'), { hypervisor: 'plain', targetState: 'Running' }), { hypervisor: 'plain' })
})

t.test('a copy whose VM cannot be started leaves the instance where it can be restored from', async (t) => {
  const app = await sourceIn(t, 'Running')
  const { call, copies, files, host } = app
  const copy = await copies.capture('web', 'Standby', files('one'))
  await call('POST', '/instances/web/stop')
  host.failures.set('restore', new Error('QEMU ended'))
  await t.rejects(copies.restore('web', copy, files('one'), {}), /QEMU ended/)
  host.failures.clear()
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('files that cannot be put in place leave the instance Unknown, and the next server finishes it', async (t) => {
  const before = await sourceIn(t, 'Running')
  const { call, copies, files, folder, host, id } = before
  const copy = await copies.capture('web', 'Standby', files('one'))
  await appendFile(join(folder(id), 'overlay.ext4'), ', second')
  await call('POST', '/instances/web/stop')
  // Nothing takes the place of a folder that is not empty.
  await rm(join(folder(id), 'overlay.ext4'))
  const obstacle = join(folder(id), 'overlay.ext4')
  await mkdir(join(obstacle, 'in-the-way'), { recursive: true })
  await t.rejects(copies.restore('web', copy, files('one'), {}))
  t.match((await call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /snapshot/ })
  t.equal((await call('POST', '/instances/web/start')).status, 409)
  await before.app.stop()
  await rm(obstacle, { recursive: true })
  const after = await startWithCopies(t, { host, dataDir: before.dataDir })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby' })
  t.equal(await diskMark(join(folder(id), 'overlay.ext4')), 'first')
  t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

for (const target of ['Standby', 'Stopped', 'Running'] as const) {
  for (const fault of ['the database', 'the disk'] as const) {
    t.test(`a restore to ${target} that ${fault} cuts off for a moment leaves the instance Unknown, and goes on by itself`, async (t) => {
      const app = await sourceIn(t, 'Running')
      const { call, copies, files, folder, host, id } = app
      const copy = await copies.capture('web', 'Standby', files('one'))
      const memory = await readFile(files('one').memory.path, 'utf8')
      await appendFile(join(folder(id), 'overlay.ext4'), ', second')
      await call('POST', '/instances/web/stop')
      const restore = async (): Promise<void> => { await t.rejects(copies.restore('web', copy, files('one'), { targetState: target })) }
      if (fault === 'the database') {
        failOnce(t, LiveInstance.prototype, 'save', { done: false })
        await restore()
      } else {
        await failingOnce(app.dataDir, 'rename overlay.ext4 to overlay.ext4', restore)
      }
      t.match((await call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /snapshot/ })
      for (const verb of ['start', 'restore']) t.equal((await call('POST', `/instances/web/${verb}`)).status, 409)
      t.equal((await call('PATCH', '/instances/web', { auto_standby: { idle_timeout: '5m' } })).status, 200)
      const state = target === 'Stopped' ? 'Stopped' : 'Standby'
      await until(async () => (await call('GET', '/instances/web')).body['state'] === state)
      t.match((await call('GET', '/instances/web')).body, { has_snapshot: state === 'Standby', state_error: null, auto_standby: { idle_timeout: '300s' } })
      t.equal(await diskMark(join(folder(id), 'overlay.ext4')), 'first')
      t.same(await settledFiles(folder(id)), [...logs, ...state === 'Standby' ? ['memory', 'standby'] : []].sort())
      await app.app.stop()
      const later = await startWithCopies(t, { host, dataDir: app.dataDir })
      t.match((await later.call('GET', '/instances/web')).body, { state })
      t.equal(await diskMark(join(folder(id), 'overlay.ext4')), 'first')
      t.match(await later.call('POST', `/instances/web/${state === 'Standby' ? 'restore' : 'start'}`), { status: 200 })
      if (state === 'Standby') t.equal(host.vm.restoredFrom?.memory, memory)
    })
  }
}
