// Copies of instances on a scripted host: what is taken from each state, what is made of it, and what failures leave.
import { appendFile, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { CopyFiles, InstanceCopy } from '../../../plugins/instances/contract.ts'
import { detailsOf } from '../../../plugins/instances/copies/copy.ts'
import { diskMark, logs, sourceIn, withPlainDriver, type Source } from './copies-app.ts'
import { settledFiles, until } from './crash.ts'
import { withFullDisk } from './crash-points.ts'

const kinds = [
  { from: 'Running', kind: 'Standby', config: {} },
  { from: 'Running', kind: 'Standby', config: { memoryFiles: false } },
  { from: 'Standby', kind: 'Standby', config: {} },
  { from: 'Stopped', kind: 'Stopped', config: {} }
] as const

for (const { from, kind, config } of kinds) {
  t.test(`a copy of kind ${kind} of a ${from} instance ${'memoryFiles' in config ? 'without a memory file ' : ''}is files of the server, and the instance goes on`, async (t) => {
    const app = await sourceIn(t, from, config)
    const { call, copies, files, host, id, folder } = app
    const before = (await call('GET', '/instances/web')).body
    const listed = (await readdir(folder(id))).sort()
    const copy = await copies.capture('web', kind, files('one'))
    t.match(copy, { kind, sourceId: id, sourceName: 'web', hypervisor: 'qemu', image: host.image.name, imageDigest: host.image.digest })
    t.same(JSON.parse(JSON.stringify(copy)), copy, 'plain JSON')
    t.equal(copy.memory === undefined, kind === 'Stopped')
    t.same((await call('GET', '/instances/web')).body, before)
    t.same((await readdir(folder(id))).sort(), listed)
    t.same((await readdir(app.copiesFolder)).sort(), kind === 'Standby' ? ['one.memory', 'one.overlay', 'one.state'] : ['one.overlay'])
    for (const name of await readdir(app.copiesFolder)) {
      const { mode, uid } = await stat(join(app.copiesFolder, name))
      t.equal(mode & 0o777, 0o600, name)
      t.equal(uid, process.getuid?.(), name)
    }
    t.equal(await diskMark(files('one').overlay), 'first')
    t.ok((await stat(files('one').overlay)).blocks * 512 < 2 ** 23, 'sparse')
    if (kind === 'Standby') {
      t.equal(await readFile(files('one').state, 'utf8'), 'state of a guest asleep')
      t.equal(await readFile(files('one').memory.path, 'utf8'), `memory of pid ${host.vm.handle.pid}`)
    }
    if (from === 'Running') {
      t.match(host.vm, { phase: 'running', state: { status: 'running' } })
      t.same(host.vm.wakes, [{}])
    }
  })
}

t.test('facts are found by id, name and the beginning of an id', async (t) => {
  const { copies, id, host } = await sourceIn(t, 'Running')
  for (const ref of [id, 'web', id.slice(0, 6)]) t.same(copies.find(ref), { id, name: 'web', state: 'Running', hypervisor: 'qemu', imageDigest: host.image.digest, isWorker: false })
  t.throws(() => copies.find('nobody'), { code: 'not_found' })
})

t.test('the compression of a copy is that of the request, else of the policy', async (t) => {
  const { copies, make } = await sourceIn(t, 'Running')
  await make('packed', { snapshot_policy: { compression: { enabled: true, algorithm: 'lz4', level: 3 } } })
  t.equal(copies.compression('web', undefined), undefined)
  t.same(copies.compression('web', { enabled: true }), { algorithm: 'zstd', level: 1 })
  t.same(copies.compression('packed', undefined), { algorithm: 'lz4', level: 3 })
  t.same(copies.compression('packed', { enabled: true, algorithm: 'zstd', level: 19 }), { algorithm: 'zstd', level: 19 })
  t.equal(copies.compression('packed', { enabled: false }), undefined)
  t.throws(() => copies.compression('web', { enabled: true, algorithm: 'lz4', level: 12 }), { code: 'invalid_snapshot_policy' })
  t.throws(() => copies.compression('nobody', undefined), { code: 'not_found' })
})

const refusals = [
  { state: 'Running', kind: 'Stopped' }, { state: 'Standby', kind: 'Stopped' }, { state: 'Stopped', kind: 'Standby' }
] as const
for (const { state, kind } of refusals) {
  t.test(`no copy of kind ${kind} is taken of a ${state} instance`, async (t) => {
    const { copies, files, copiesFolder } = await sourceIn(t, state)
    await t.rejects(copies.capture('web', kind, files('one')), { code: 'invalid_state', kind: 'wrong-state', message: new RegExp(`snapshot: .*current state: ${state}`) })
    t.same(await readdir(copiesFolder), [])
  })
}

t.test('no copy of kind Standby is taken of a VM whose driver makes no memory images', async (t) => {
  const { copies, files, host, make, waitFor } = await sourceIn(t, 'Running')
  host.makesImages = false
  await make('plain')
  await waitFor('plain', 'Running')
  await t.rejects(copies.capture('plain', 'Standby', files('one')), { code: 'not_supported', message: /^snapshot: / })
})

for (const step of ['sleep', 'capture', 'captured'] as const) {
  t.test(`a capture that finds the disk full at "${step}" leaves the instance running and no files`, async (t) => {
    const { call, copies, copiesFolder, files, folder, host, id } = await sourceIn(t, 'Running', { memoryFiles: false })
    host.failures.set(step, Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }))
    await t.rejects(copies.capture('web', 'Standby', files('one')), { code: 'insufficient_resources', message: /^snapshot: the disk/ })
    host.failures.clear()
    t.same(await readdir(copiesFolder), [])
    t.same((await readdir(folder(id))).sort(), logs)
    t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
    t.match(host.vm, { phase: 'running', state: { status: 'running' } })
    t.match(await copies.capture('web', 'Standby', files('one')), { kind: 'Standby' })
  })
}

t.test('a capture that cannot write one of its files leaves none of them, and the instance running', async (t) => {
  const { call, copies, copiesFolder, files, host } = await sourceIn(t, 'Running')
  const { overlay, volumes, state } = files('one')
  await t.rejects(copies.capture('web', 'Standby', { overlay, volumes, state, memory: { path: join(copiesFolder, 'nowhere', 'memory') } }))
  t.same(await readdir(copiesFolder), [])
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  t.equal(host.vm.phase, 'running')
})

t.test('a VM that ends while it is captured is Stopped, and no files stay', async (t) => {
  const { call, copies, copiesFolder, files, host } = await sourceIn(t, 'Running')
  host.onStep = async (step, vm) => {
    if (step !== 'capture') return
    await vm?.exit({ exitCode: 3 })
    throw new Error('the connection to the VMM ended')
  }
  await t.rejects(copies.capture('web', 'Standby', files('one')), { code: 'invalid_state', message: /has ended/ })
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 3 })
  t.same(await readdir(copiesFolder), [])
})

t.test('what becomes of the instance afterwards changes nothing about a copy', async (t) => {
  const app = await sourceIn(t, 'Running')
  const { call, copies, files, folder, id } = app
  const copy = await copies.capture('web', 'Standby', files('one'))
  const memory = await readFile(files('one').memory.path, 'utf8')
  await appendFile(join(folder(id), 'overlay.ext4'), ', second')
  await call('POST', '/instances/web/standby')
  await call('POST', '/instances/web/restore')
  await call('POST', '/instances/web/standby')
  await call('DELETE', '/instances/web')
  t.equal(await readFile(files('one').memory.path, 'utf8'), memory)
  t.equal(await diskMark(files('one').overlay), 'first')
  t.match(await copies.fork(copy, files('one'), { name: 'copy' }), { name: 'copy', state: 'Running' })
  t.equal(app.host.vm.restoredFrom?.memory, memory)
})

const forks = [
  { kind: 'Standby', target: undefined, state: 'Running', files: ['memory', ...logs] },
  { kind: 'Standby', target: 'Running', state: 'Running', files: ['memory', ...logs] },
  { kind: 'Standby', target: 'Standby', state: 'Standby', files: ['memory', ...logs, 'standby'] },
  { kind: 'Standby', target: 'Stopped', state: 'Stopped', files: logs },
  { kind: 'Stopped', target: undefined, state: 'Stopped', files: logs },
  { kind: 'Stopped', target: 'Stopped', state: 'Stopped', files: logs },
  { kind: 'Stopped', target: 'Running', state: 'Running', files: ['memory', ...logs] }
] as const

for (const { kind, target, state, files: expected } of forks) {
  t.test(`a copy of kind ${kind} forked to ${target ?? 'what is usual'} gives an instance of its own in ${state}`, async (t) => {
    const { call, copies, files, folder, host, id, waitFor } = await sourceIn(t, kind === 'Standby' ? 'Running' : 'Stopped')
    const before = (await call('GET', '/instances/web')).body
    const copy = await copies.capture('web', kind, files('one'))
    const source = host.vm
    t.match(await copies.fork(copy, files('one'), { name: 'copy', ...(target === undefined ? {} : { targetState: target }) }), { name: 'copy' })
    t.match((await waitFor('copy', state)).body, { state })
    const fork = (await call('GET', '/instances/copy')).body
    t.not(fork['id'], id)
    for (const field of ['image', 'env', 'tags', 'vcpus', 'size', 'overlay_size', 'hypervisor']) t.same(fork[field], before[field], field)
    t.match(fork, { state, has_snapshot: state === 'Standby', exit_code: null, stopped_at: null })
    t.same((await readdir(folder(fork['id']))).sort(), [...expected].sort())
    t.equal(await diskMark(join(folder(fork['id']), 'overlay.ext4')), 'first')
    t.ok(host.held.has(`instance:${String(fork['id'])}`))
    if (process.getuid?.() === 0) t.not((await stat(join(folder(fork['id']), 'overlay.ext4'))).uid, 0, 'its VM\'s user owns it')
    if (state === 'Running' && kind === 'Standby') {
      t.match(host.vm.restoredFrom, { state: 'state of a guest asleep', memory: `memory of pid ${source.handle.pid}` })
      t.same(host.vm.wakes, [{ hostname: 'copy', newMachine: true }])
      t.equal(host.vm.spec.memory?.path, join(folder(fork['id']), 'memory'))
    }
    if (state === 'Running' && kind === 'Stopped') t.equal(host.vm.workload?.newMachine, true)
    if (state === 'Standby') {
      t.match(await call('POST', '/instances/copy/restore'), { status: 200 })
      t.same(host.vm.wakes, [{ hostname: 'copy', newMachine: true }])
    }
    t.equal(await diskMark(files('one').overlay), 'first', 'the copy is what it was')
  })
}

t.test('sixteen forks of one copy at once are all different, and the copy stays what it is', async (t) => {
  const { copies, dataDir, files, host } = await sourceIn(t, 'Running')
  const copy = await copies.capture('web', 'Standby', files('one'))
  const memory = await readFile(files('one').memory.path, 'utf8')
  const views = await Promise.all(Array.from({ length: 16 }, async (_, index) => await copies.fork(copy, files('one'), { name: `copy-${index}` })))
  t.equal(new Set(views.map((view) => JSON.stringify(view))).size, 16)
  t.same(host.vms.slice(1).map(({ restoredFrom }) => restoredFrom?.memory), Array.from({ length: 16 }, () => memory))
  t.same(host.vms.slice(1).map(({ wakes }) => wakes[0]?.hostname).sort(), Array.from({ length: 16 }, (_, index) => `copy-${index}`).sort())
  t.equal(await readFile(files('one').memory.path, 'utf8'), memory)
  t.equal((await readdir(join(dataDir, 'instances'))).length, 17)
})

t.test('what cannot be made of a copy is refused', async (t) => {
  const { call, copies, dataDir, files, host, make, waitFor } = await sourceIn(t, 'Stopped')
  const stopped = await copies.capture('web', 'Stopped', files('stopped'))
  await make('other')
  await waitFor('other', 'Running')
  const asleep = await copies.capture('other', 'Standby', files('asleep'))
  const before = await readdir(join(dataDir, 'instances'))
  const cases: readonly [InstanceCopy, CopyFiles, Record<string, unknown>, string, RegExp][] = [
    [stopped, files('stopped'), { name: 'copy', targetState: 'Standby' }, 'invalid_request', /^target_state: /],
    [asleep, files('asleep'), { name: 'copy', hypervisor: 'qemu' }, 'invalid_request', /^target_hypervisor: /],
    [stopped, files('stopped'), { name: 'copy', hypervisor: 'firecracker' }, 'plugin_disabled', /^target_hypervisor needs the plugin hypervisor-firecracker/],
    [stopped, files('stopped'), { name: 'web' }, 'name_conflict', /web/],
    [{ ...stopped, imageDigest: 'sha256:gone' }, files('stopped'), { name: 'copy' }, 'image_missing', /test:latest/]
  ]
  for (const [copy, from, request, code, message] of cases) {
    await t.rejects(copies.fork(copy, from, { name: 'copy', ...request }), { code, message })
  }
  await t.rejects(copies.fork({ ...stopped, version: 2 }, files('stopped'), { name: 'copy' }), /version 2/)
  await t.rejects(copies.fork({ ...stopped, spec: {} }, files('stopped'), { name: 'copy' }), /whole/)
  t.same(await readdir(join(dataDir, 'instances')), before)
  t.equal(host.held.size, 2)
  t.equal((await call('GET', '/instances/copy')).status, 404)
  t.match(await copies.fork(stopped, files('stopped'), { name: 'copy', hypervisor: 'qemu' }), { hypervisor: 'qemu', state: 'Stopped' })
})

t.test('a fork to another hypervisor is refused what a create there is refused, before anything is made', async (t) => {
  const { call, copies, crowded, dataDir, files, host, modest, wanting } = await withPlainDriver(t)
  const volumes = [{ volumeId: 'data', mountPath: '/data', readonly: true, place: 0, generation: 0 }]
  const details = detailsOf(modest)
  const before = await readdir(join(dataDir, 'instances'))
  const cases = [...wanting, ['volumes', { ...modest, spec: { ...details, created: { ...details.created, volumes } } }]] as const
  for (const [field, copy] of cases) {
    for (const targetState of ['Stopped', 'Running'] as const) {
      await t.rejects(copies.fork(copy, files('web'), { name: 'copy', hypervisor: 'plain', targetState }), { code: 'not_supported', kind: 'unsupported', message: `${field}: the hypervisor plain cannot do that` })
    }
  }
  await t.rejects(copies.fork(crowded, files('web'), { name: 'copy', hypervisor: 'plain' }), { code: 'invalid_request', kind: 'invalid', message: 'vcpus: must be at most 8 with the hypervisor plain' })
  t.same(await readdir(join(dataDir, 'instances')), before)
  t.equal(host.held.size, 1)
  t.equal((await call('GET', '/instances/copy')).status, 404)
  t.match(await copies.fork(modest, files('web'), { name: 'copy', hypervisor: 'plain' }), { hypervisor: 'plain', state: 'Stopped' })
  t.match(await call('POST', '/instances/copy/start'), { status: 200 })
})

for (const [what, spoil] of Object.entries({
  'a memory file that is gone': async (files: CopyFiles) => { await rm(files.memory.path) },
  'a state file that is gone': async (files: CopyFiles) => { await rm(files.state) },
  'a disk that is gone': async (files: CopyFiles) => { await rm(files.overlay) }
})) {
  t.test(`a copy with ${what} gives no instance, and harms none`, async (t) => {
    const { call, copies, dataDir, files, folder, host, id } = await sourceIn(t, 'Running')
    const copy = await copies.capture('web', 'Standby', files('one'))
    await call('POST', '/instances/web/standby')
    await spoil(files('one'))
    await t.rejects(copies.fork(copy, files('one'), { name: 'copy' }))
    await t.rejects(copies.restore('web', copy, files('one'), {}))
    t.same(await readdir(join(dataDir, 'instances')), [id])
    t.same((await readdir(folder(id))).sort(), ['memory', ...logs, 'standby'].sort())
    t.equal(host.held.size, 1)
    t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  })
}

t.test('a fork whose VM cannot be restored leaves nothing', async (t) => {
  const { copies, dataDir, files, host, id } = await sourceIn(t, 'Running')
  const copy = await copies.capture('web', 'Standby', files('one'))
  for (const step of ['restore', 'restored'] as const) {
    host.failures.set(step, new Error('QEMU ended'))
    await t.rejects(copies.fork(copy, files('one'), { name: 'copy' }), /QEMU ended/)
    host.failures.clear()
  }
  t.same(await readdir(join(dataDir, 'instances')), [id])
  t.equal(host.held.size, 1)
})

const full = {
  'a capture of what runs': async ({ copies, files }: Source) => { await copies.capture('web', 'Standby', files('other')) },
  'a fork of a copy': async ({ copies, files }: Source, copy: InstanceCopy) => { await copies.fork(copy, files('one'), { name: 'copy', targetState: 'Standby' }) },
  'a fork of a copy that is to run': async ({ copies, files }: Source, copy: InstanceCopy) => { await copies.fork(copy, files('one'), { name: 'copy' }) },
  'putting an instance back': async ({ copies, files }: Source, copy: InstanceCopy) => { await copies.restore('web', copy, files('one'), { targetState: 'Standby' }) }
}
for (const [what, work] of Object.entries(full)) {
  t.test(`${what} that finds the disk full at any step says so, and leaves everything as it was`, async (t) => {
    const app = await sourceIn(t, 'Running')
    const { call, copies, copiesFolder, dataDir, files, folder, host, id } = app
    const copy = await copies.capture('web', 'Standby', files('one'))
    if (what === 'putting an instance back') await call('POST', '/instances/web/standby')
    await until(async () => !(await readdir(folder(id))).includes('standby') || (await readFile(join(folder(id), 'standby', 'image.json'), 'utf8')).includes('"bootId":null'))
    await appendFile(join(folder(id), 'overlay.ext4'), ', second')
    const before = (await call('GET', '/instances/web')).body
    const listed = (await readdir(folder(id))).sort()
    const stored = (await readdir(copiesFolder)).sort()
    let steps = 0
    for (let failed: string | undefined = ''; failed !== undefined; steps++) {
      let error: unknown
      failed = await withFullDisk(dataDir, steps, async () => { await work(app, copy).catch((reason: unknown) => { error = reason }) })
      if (failed === undefined) {
        t.equal(error, undefined, 'and without that it succeeds')
        break
      }
      t.match(error, { code: 'insufficient_resources', message: /the disk of the data folder is full/ }, failed)
      t.same((await call('GET', '/instances/web')).body, before)
      t.same((await readdir(folder(id))).sort(), listed)
      t.equal(await diskMark(join(folder(id), 'overlay.ext4')), 'first, second')
      t.same((await readdir(copiesFolder)).sort(), stored)
      t.same(await readdir(join(dataDir, 'instances')), [id])
      t.equal(host.held.size, 1)
      t.equal((await call('GET', '/instances/copy')).status, 404)
      t.ok(host.vms.every((vm, index) => index === 0 || vm.state.status === 'gone'), 'no VM of a fork stays')
    }
    t.ok(steps > 2, `${steps} steps`)
  })
}

t.test('many calls on one instance and its copies at once end in an order, and nothing is lost', async (t) => {
  const { call, copies, dataDir, files, folder, id } = await sourceIn(t, 'Standby')
  const copy = await copies.capture('web', 'Standby', files('one'))
  const [inOrder, forks] = await Promise.all([
    Promise.allSettled([
      copies.restore('web', copy, files('one'), { targetState: 'Standby' }),
      copies.capture('web', 'Standby', files('two')),
      copies.restore('web', copy, files('one'), { targetState: 'Running' }),
      copies.restore('web', copy, files('one'), { targetState: 'Standby' }),
      copies.capture('web', 'Standby', files('three'))
    ]),
    Promise.allSettled([copies.fork(copy, files('one'), { name: 'copy' }), copies.fork(copy, files('one'), { name: 'copy' })])
  ])
  t.same(inOrder.map(({ status }) => status), ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled'], 'a running instance is not put back')
  t.same(forks.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'one of them has the name')
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  t.same(await settledFiles(folder(id)), ['memory', ...logs])
  t.equal((await readdir(join(dataDir, 'instances'))).length, 2)
})
