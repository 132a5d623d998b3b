// Templates on a scripted host: which way an instance comes up, what is made in the background, and what failures leave.
import { cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { until } from './crash.ts'
import { alive, startWithTemplates } from './templates-app.ts'

t.test('the first instance of a shape boots, and the next one is a spare VM of its template', async (t) => {
  const app = await startWithTemplates(t)
  const { call, host, make, waitFor, count, wayOf, remains } = app
  const first = await app.warmUp()
  t.equal(await wayOf(first), 'by a boot')
  t.equal(await count('templates'), 1)
  const spare = host.vm
  t.match(spare, { state: { status: 'paused' }, phase: 'waiting', rehearsals: 1, restoredFrom: { state: 'state of a guest waiting' } })
  t.equal(alive(app).length, 2, 'the VM that the template was made of is gone')
  t.same(JSON.parse((await call('GET', '/instances')).text).map(({ name }: { name: string }) => name), ['first'], 'what the server has for itself is in no list')
  t.match(await call('GET', '/capabilities'), { body: { features: ['instances', 'images', 'exec', 'logs', 'instant-create'] } })
  const id = await make('second', { env: { A: 'b' }, tags: { x: 'y' } })
  t.equal(await wayOf(id), 'from a spare VM')
  t.match((await waitFor('second', 'Running')).body, { state: 'Running' })
  t.match((await call('GET', '/instances/second')).body, { id, name: 'second', env: { A: 'b' }, tags: { x: 'y' }, overlay_size: '32MB' })
  const vm = host.vms.find(({ spec }) => spec.id === id)
  t.equal(vm, spare)
  t.same(Object.fromEntries(spare.disks), { root: host.image.rootfs, overlay: join(app.dataDir, 'instances', id, 'overlay.ext4') })
  t.match(spare.workload, { hostname: 'second', argv: ['/bin/tool', 'serve'], env: { A: 'b' } })
  t.equal(host.held.size, 2)
  await until(async () => await count('spares') === 1)
  const [template] = (await remains()).templates
  t.match([(await call('GET', `/instances/${first}`)).body, (await call('GET', '/instances/second')).body], [{ source: { kind: 'image', id: host.image.digest, name: host.image.name } }, { source: { kind: 'template', id: template } }], 'each says what it was made of')
  t.same(JSON.parse((await call('GET', '/templates')).text).map(({ last_used_at: _, disk_bytes: bytes, ...rest }: Record<string, unknown>) => ({ ...rest, hasSize: Number(bytes) > 0 })),
    [{ id: template, hypervisor: 'qemu', vcpus: 2, size: '1GB', network: false, spares: 1, instances: 1, hasSize: true }])
  t.same((await remains()).folders, (await remains()).rows)
  t.equal((await remains()).rows.length, 3)
  t.match(await call('POST', '/instances/second/standby'), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', '/instances/second/restore'), { status: 200, body: { state: 'Running' } })
  t.notOk((await readdir(join(app.dataDir, 'instances', id))).includes('restore.kept'), 'the rehearsal has shown that VMs go on from memory images of this kind')
  t.equal((await call('DELETE', '/instances/second')).status, 204)
  t.equal(host.held.size, 1)
})

t.test('without spare VMs an instance is a clone of the template, in a memory file of its own', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { spares: 0 } } })
  const { host, make, waitFor, count, wayOf } = app
  await make('first')
  await until(async () => await count('templates') === 1)
  const template = host.vms.find(({ spec }) => spec.disks[0]?.path.endsWith('stage.erofs'))
  const ids = await Promise.all(['one', 'two'].map(async (name) => await make(name)))
  for (const [index, id] of ids.entries()) {
    t.equal(await wayOf(id), 'from a template')
    t.match((await app.call('GET', `/instances/${id}`)).body, { source: { kind: 'template', id: /^[0-9a-f]{32}$/ } })
    const vm = host.vms.find(({ spec }) => spec.id === id)
    t.match(vm?.restoredFrom, { state: 'state of a guest waiting', memory: `memory of pid ${template?.handle.pid}` })
    t.equal(vm?.spec.memory?.path, join(app.dataDir, 'instances', id, 'memory'))
    t.match(vm?.workload, { hostname: ['one', 'two'][index] })
    t.match((await waitFor(id, 'Running')).body, { state: 'Running' })
  }
  t.equal(alive(app).length, 3, 'no VM is kept ready')
})

t.test('two creates at once share one spare VM fairly: one has it, the other is a clone', async (t) => {
  const app = await startWithTemplates(t)
  await app.warmUp()
  const ids = await Promise.all(['one', 'two'].map(async (name) => await app.make(name)))
  t.same((await Promise.all(ids.map(app.wayOf))).sort(), ['from a spare VM', 'from a template'])
  const vms = ids.map((id) => app.host.vms.find(({ spec }) => spec.id === id))
  t.not(vms[0], vms[1])
  if (process.getuid?.() === 0) t.not(vms[0]?.spec.identity?.uid, vms[1]?.spec.identity?.uid)
})

t.test('two creates of a new shape at once make one template', async (t) => {
  const app = await startWithTemplates(t)
  await Promise.all(['one', 'two'].map(async (name) => await app.make(name)))
  await until(async () => await app.count('spares') === 1)
  t.equal(app.host.vms.filter(({ spec, restoredFrom }) => restoredFrom === undefined && spec.disks[0]?.path.endsWith('stage.erofs')).length, 1)
})

t.test('a name that is taken leaves the spare VM as it was', async (t) => {
  const app = await startWithTemplates(t)
  await app.warmUp()
  const spare = app.host.vm
  t.match(await app.call('POST', '/instances', { name: 'first', image: 'test', overlay_size: '64MB' }), { status: 409, body: { code: 'name_conflict' } })
  t.match(spare, { state: { status: 'paused' }, phase: 'waiting' })
  t.equal(app.host.held.size, 1)
  t.equal(await app.count('spares'), 1)
  const id = await app.make('second')
  t.equal(await app.wayOf(id), 'from a spare VM')
  t.equal(app.host.vms.find(({ spec }) => spec.id === id), spare)
  t.match(await app.call('POST', '/instances', { name: '~x', image: 'test' }), { status: 400 }, 'the names of the server\'s own VMs cannot be asked for')
})

t.test('a spare VM gets a writable disk of the size that is asked for', async (t) => {
  const app = await startWithTemplates(t)
  await app.warmUp()
  const id = await app.make('second', { overlay_size: '48MB' })
  t.equal(await app.wayOf(id), 'from a spare VM')
  t.equal((await stat(join(app.dataDir, 'instances', id, 'overlay.ext4'))).size, 48 * 2 ** 20)
})

t.test('a spare VM that has died is no hindrance', async (t) => {
  const app = await startWithTemplates(t)
  const first = await app.warmUp()
  app.host.vm.set({ status: 'gone' })
  const id = await app.make('second')
  t.equal(await app.wayOf(id), 'from a template')
  await until(async () => await app.count('spares') === 1)
  t.equal((await app.remains()).rows.length, 3)
  t.same((await app.remains()).folders, (await app.remains()).rows)
  t.ok((await app.remains()).rows.includes(first))
})

for (const step of ['replace', 'replaced', 'resume'] as const) {
  t.test(`a spare VM that fails at "${step}" is given up for a clone`, async (t) => {
    const app = await startWithTemplates(t)
    await app.warmUp()
    const spare = app.host.vm
    app.host.failures.set(step, new Error('the VMM refuses'))
    const id = await app.make('second')
    app.host.failures.clear()
    t.equal(await app.wayOf(id), 'from a template')
    t.equal(spare.state.status, 'gone')
    t.equal(spare.workload, undefined)
    t.equal(app.host.held.size, 2)
    await until(async () => await app.count('spares') === 1)
    t.equal((await app.remains()).rows.length, 3)
    t.same((await app.remains()).folders, (await app.remains()).rows)
  })
}

t.test('a template that no VM can be made of is removed, and the instance boots', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { spares: 0 } } })
  await app.make('first')
  await until(async () => await app.count('templates') === 1)
  app.host.failures.set('restore', new Error('a damaged image'))
  const id = await app.make('second')
  t.equal(await app.wayOf(id), 'by a boot')
  t.match((await app.waitFor('second', 'Running')).body, { state: 'Running' })
  await until(async () => await app.count('templates') === 0 && (await app.remains()).templates.length === 0)
  app.host.failures.clear()
  t.equal(await app.wayOf(await app.make('third')), 'by a boot')
})

for (const step of ['launch', 'capture', 'captured', 'restore', 'restored', 'pause'] as const) {
  t.test(`a template that fails at "${step}" is logged once, leaves nothing, and is no hindrance`, async (t) => {
    const app = await startWithTemplates(t)
    await app.make('zero', { size: '512MB' })
    await until(async () => await app.count('spares') === 1)
    // The instance itself boots before that.
    let first = ''
    app.host.onStep = (now) => { if (now === step && app.host.vms.some(({ spec }) => spec.id === first) && first !== '') throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }) }
    first = await app.make('first')
    await until(async () => app.lines.some(({ msg }) => String(msg).startsWith('a template, or a spare VM of it, could not be made')))
    app.host.onStep = undefined
    t.equal(app.lines.filter(({ level, msg }) => (level === 'warn' || level === 'error') && /template/.test(String(msg))).length, 1)
    t.equal((await app.remains()).templates.length, 1)
    t.equal((await app.remains()).rows.length, 3)
    t.same((await app.remains()).folders, (await app.remains()).rows)
    t.equal(alive(app).length, 3)
    const second = await app.make('second')
    t.equal(await app.wayOf(second), 'by a boot')
    t.match((await app.waitFor('second', 'Running')).body, { state: 'Running' })
  })
}

t.test('guests that cannot rehearse serve as they are', async (t) => {
  const app = await startWithTemplates(t)
  app.host.failures.set('rehearse', Object.assign(new Error('this guest cannot'), { code: 'guest_refused' }))
  await app.warmUp()
  t.equal(app.host.vm.rehearsals, 0)
  t.equal(await app.wayOf(await app.make('second')), 'from a spare VM')
  await until(async () => await app.count('spares') === 1)
  t.equal(app.lines.filter(({ msg }) => String(msg).includes('rehearsal')).length, 1)
  t.equal(alive(app).length, 3)
})

t.test('a driver that cannot replace disks has templates and no spare VMs', async (t) => {
  const app = await startWithTemplates(t)
  app.host.replacesDisks = false
  await app.make('first')
  await until(async () => await app.count('templates') === 1)
  t.equal(await app.wayOf(await app.make('second')), 'from a template')
  await until(async () => alive(app).length === 2)
  t.equal(await app.count('spares'), 0)
})

t.test('a driver without memory images boots every VM', async (t) => {
  const app = await startWithTemplates(t)
  app.host.makesImages = false
  await app.make('first')
  t.equal(await app.wayOf(await app.make('second')), 'by a boot')
})

t.test('of too many templates the one goes that was not used for longest', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { spares: 0, maxCount: 2 } } })
  const make = async (size: string, templates: number): Promise<string> => {
    const id = await app.make(`of-${size.toLowerCase()}-${Math.random().toString(36).slice(2)}`, { size })
    await until(async () => await app.count('templates') === templates)
    return await app.wayOf(id)
  }
  await make('128MB', 1)
  await make('256MB', 2)
  const old = (await app.remains()).templates
  t.equal(await make('128MB', 2), 'from a template')
  await make('512MB', 2)
  await until(async () => {
    const { templates: now } = await app.remains()
    return now.length === 2 && now.some((key) => !old.includes(key) && !key.startsWith('.'))
  })
  t.equal(await make('128MB', 2), 'from a template')
  t.equal(await make('256MB', 2), 'by a boot')
})

t.test('a template that is larger than all may be is not kept', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { maxSize: '1KB' } } })
  await app.make('first')
  await until(async () => app.lines.some(({ msg }) => String(msg).includes('is not kept')) && await app.count('spares') === 1)
  t.same((await app.remains()).templates, [])
  t.equal(await app.wayOf(await app.make('second')), 'from a spare VM', 'what was made of it is good all the same')
  t.equal(await app.wayOf(await app.make('third')), 'by a boot')
  t.equal(app.lines.filter(({ msg }) => String(msg).includes('is not kept')).length, 1, 'it is not tried again and again')
})

t.test('templates outlive the server, and those of another guest system or VMM do not', async (t) => {
  const before = await startWithTemplates(t)
  await before.warmUp()
  await before.app.stop()
  const same = await startWithTemplates(t, { host: before.host, dataDir: before.dataDir })
  t.same(await same.count('templates'), 1)
  t.equal(await same.wayOf(await same.make('second')), 'from a template')
  await same.app.stop()
  for (const change of ['systemVersion', 'vmmVersion'] as const) {
    before.host[change] = 'new'
    const after = await startWithTemplates(t, { host: before.host, dataDir: before.dataDir })
    const { templates: old } = await after.remains()
    t.equal(await after.wayOf(await after.make(`after-${change.toLowerCase()}`)), 'by a boot')
    await until(async () => await after.count('spares') === 1)
    t.equal((await after.remains()).templates.length, 1, 'it is made anew')
    t.notSame((await after.remains()).templates, old)
    await after.app.stop()
  }
})

t.test('what is no template is removed at the start', async (t) => {
  const before = await startWithTemplates(t)
  await before.warmUp()
  await before.app.stop()
  const folder = join(before.dataDir, 'templates')
  const [key = ''] = (await before.remains()).templates
  for (const name of ['.making-x', '.trash-x', 'half', 'cut']) await mkdir(join(folder, name))
  await writeFile(join(folder, '.making-x', 'memory'), 'x')
  await writeFile(join(folder, 'cut', 'template.json'), '{"version":1,"key"')
  await cp(join(folder, key), join(folder, 'renamed'), { recursive: true })
  const after = await startWithTemplates(t, { host: before.host, dataDir: before.dataDir })
  t.same((await after.remains()).templates, [key])
})

t.test('with templates turned off, those that are there go', async (t) => {
  const before = await startWithTemplates(t)
  await before.warmUp()
  await before.app.stop()
  const after = await startWithTemplates(t, { host: before.host, dataDir: before.dataDir, config: { templates: { enabled: false } } })
  t.notOk((await readdir(before.dataDir)).includes('templates'))
  t.equal(await after.wayOf(await after.make('second')), 'by a boot')
  t.notMatch((await after.call('GET', '/capabilities')).text, /instant-create/)
})

t.test('the server ends its own VMs when it ends, and what it is making', async (t) => {
  const app = await startWithTemplates(t)
  const first = await app.warmUp()
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reached = new Promise<void>((resolve) => {
    app.host.onStep = async (now) => {
      if (now !== 'capture') return
      resolve()
      await held
    }
  })
  const second = await app.make('second', { size: '2GB' })
  await reached
  const stopping = app.app.stop()
  go()
  await stopping
  t.same(alive(app).map(({ spec }) => spec.id).sort(), [first, second].sort())
  const { rows, folders, templates } = await app.remains()
  t.same(rows, [first, second].sort())
  t.same(folders, rows)
  t.equal(templates.length, 1)
})

t.test('a spare VM that nobody needs ends', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { spareIdle: '100ms' } } })
  await app.warmUp()
  await until(async () => await app.count('spares') === 0)
  await until(async () => (await app.remains()).rows.length === 1)
  t.equal(alive(app).length, 1)
  t.equal(await app.wayOf(await app.make('second')), 'from a template')
})

t.test('there are never more spare VMs than there may be', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { maxSpares: 1 } } })
  await app.warmUp()
  const { id: oldest } = app.host.vm.spec
  await app.make('second', { size: '512MB' })
  await until(async () => await app.count('templates') === 2 && await app.count('spares') === 1 && app.host.vm.spec.memoryBytes === 2 ** 29 && alive(app).length === 3)
  t.notOk(alive(app).some(({ spec }) => spec.id === oldest))
})

t.test('what the server keeps ready takes no VM user from an instance', { skip: process.getuid?.() === 0 ? false : 'VMs have users of their own only when the server is root' }, async (t) => {
  const app = await startWithTemplates(t, { config: { vmUserCount: 2 } })
  await app.warmUp()
  const id = await app.make('second', { size: '512MB' })
  t.equal(await app.wayOf(id), 'by a boot')
  t.equal(await app.count('spares'), 0)
  t.match(await app.call('POST', '/instances', { name: 'third', image: 'test' }), { status: 409, body: { code: 'insufficient_resources' } })
  t.equal(alive(app).length, 2)
  t.equal((await app.remains()).rows.length, 2)
})

t.test('a stopped instance starts as a clone of its template, on its own disk', async (t) => {
  const app = await startWithTemplates(t)
  const first = await app.warmUp()
  t.match(await app.call('POST', '/instances/first/stop'), { status: 200, body: { state: 'Stopped' } })
  t.match(await app.call('POST', '/instances/first/start', { cmd: ['again'] }), { status: 200 })
  t.match((await app.waitFor('first', 'Running')).body, { state: 'Running' })
  const vm = app.host.vms.filter(({ spec }) => spec.id === first).at(-1)
  t.match(vm, { restoredFrom: { state: 'state of a guest waiting' }, workload: { argv: ['/bin/tool', 'again'] } })
  t.equal(vm?.disks.get('overlay'), join(app.dataDir, 'instances', first, 'overlay.ext4'))
  app.host.failures.set('restore', new Error('a damaged image'))
  await app.call('POST', '/instances/first/stop')
  t.match(await app.call('POST', '/instances/first/start'), { status: 200 })
  t.equal(app.host.vms.filter(({ spec }) => spec.id === first).at(-1)?.restoredFrom, undefined, 'and boots when that does not work')
})

t.test('a template that is deleted goes with its spare VMs, and is made anew with the next instance of its shape', async (t) => {
  const app = await startWithTemplates(t)
  const first = await app.warmUp()
  const id = String((await app.remains()).templates[0])
  t.equal((await app.call('DELETE', `/templates/${id}`)).status, 204)
  t.same((await app.remains()).templates, [])
  t.equal(alive(app).length, 1, 'the instance runs on')
  t.equal(await app.count('spares'), 0)
  t.match(await app.call('DELETE', `/templates/${id}`), { status: 404, body: { code: 'not_found', message: `template ${id} does not exist` } })
  t.match(await app.call('DELETE', '/templates/..%2F..'), { status: 404, body: { code: 'not_found' } })
  const next = await app.make('next')
  t.equal(await app.wayOf(next), 'by a boot')
  await until(async () => await app.count('spares') === 1)
  t.match((await app.call('GET', `/instances/${first}`)).body, { state: 'Running' })
})
