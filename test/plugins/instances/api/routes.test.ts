// The HTTP side of instances, from create to delete, on a scripted host.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../app.ts'

t.test('the platform of the host may be asked for, and no other', async (t) => {
  const app = await startApp(t)
  await app.make('web', { platform: 'linux/amd64' })
  t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', platform: 'linux/arm64' }), { status: 400, body: { message: /^platform:/ } })
})

t.test('a created instance answers with the documented fields, and its guest gets its workload', async (t) => {
  const { call, host, dataDir } = await startApp(t)
  const { status, body } = await call('POST', '/instances', {
    name: 'web', image: 'test', env: { A: 'b' }, tags: { team: 'x' }, size: '256MB', overlay_size: '64MB', vcpus: 1,
    snapshot_policy: { compression: { enabled: true } }, skip_kernel_headers: true, network: { enabled: false }
  })
  t.equal(status, 201)
  t.match(body, {
    name: 'web', image: host.image.name, hypervisor: 'qemu', vcpus: 1, size: '256MB', overlay_size: '64MB', env: { A: 'b' }, tags: { team: 'x' },
    network: { enabled: false }, volumes: [], has_snapshot: false, exit_code: null, stopped_at: null, state_error: null, expires_at: null,
    snapshot_policy: { compression: { enabled: true, algorithm: 'zstd', level: 1 } }, platform: /^linux\//
  })
  t.match(body['id'], /^[a-z0-9]{24}$/)
  t.ok(['Initializing', 'Running'].includes(String(body['state'])))
  t.same((await call('GET', '/instances/web/wait?state=Running')).body, { state: 'Running', timed_out: false })
  t.same(host.vm.workload, { argv: ['/bin/tool', 'serve'], env: { FROM_IMAGE: 'yes', A: 'b' }, cwd: '/srv', user: '', hostname: 'web', mounts: [], agent: true })
  t.match(host.vm.spec, { vcpus: 1, memoryBytes: 2 ** 28, disks: [{ id: 'root', readonly: true }, { id: 'overlay', readonly: false }] })
  const folder = join(dataDir, 'instances', String(body['id']))
  t.same((await readdir(folder)).sort(), ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  const overlay = await stat(join(folder, 'overlay.ext4'))
  t.equal(overlay.size, 2 ** 26)
  t.ok(overlay.blocks * 512 < 2 ** 23, 'the disk is sparse')
  if (process.getuid?.() === 0) {
    t.equal(overlay.uid, 1_900_000_000)
    t.same(host.vm.spec.identity, { uid: 1_900_000_000, gid: 1_900_000_000 })
    t.equal((await stat(folder)).uid, 0)
    t.equal((await stat(folder)).mode & 0o777, 0o711)
  }
})

t.test('fields without a value are left out', async (t) => {
  const { call, make } = await startApp(t)
  await make('bare')
  const { body } = await call('GET', '/instances/bare')
  for (const field of ['env', 'tags', 'snapshot_policy', 'exit_message', 'hotplug_size', 'disk_io_bps', 'gpu', 'credentials']) t.notHas(body, field)
})

t.test('the shape of a request is checked, field by field', async (t) => {
  const { call } = await startApp(t)
  const good = { name: 'a', image: 'b' }
  const table: readonly [object, RegExp][] = [
    [{ image: 'b' }, /name/],
    [{ name: 'a' }, /image/],
    [{ ...good, name: 'A' }, /name/],
    [{ ...good, name: '-a' }, /name/],
    [{ ...good, name: 'a-' }, /name/],
    [{ ...good, name: 'a_b' }, /name/],
    [{ ...good, name: 'a'.repeat(64) }, /name/],
    [{ ...good, image: '' }, /image/],
    [{ ...good, nmae: 'x' }, /nmae/],
    [{ ...good, vcpus: 0 }, /vcpus/],
    [{ ...good, vcpus: 1.5 }, /vcpus/],
    [{ ...good, vcpus: '2' }, /vcpus/],
    [{ ...good, cmd: 'sh' }, /cmd/],
    [{ ...good, cmd: ['a\u0000b'] }, /cmd/],
    [{ ...good, env: { A: 1 } }, /env/],
    [{ ...good, tags: { 'bad,key': 'x' } }, /tags/],
    [{ ...good, tags: { k: 'x'.repeat(257) } }, /tags/],
    [{ ...good, hypervisor: 'Xen' }, /hypervisor must be the name of a hypervisor/],
    [{ ...good, network: { egress: { enforcement: { mode: 'none' } } } }, /mode/],
    [{ ...good, network: { enable: true } }, /enable/],
    [{ ...good, volumes: [{ volume_id: 'v' }] }, /mount_path/],
    [{ ...good, credentials: { T: { source: {}, inject: [] } } }, /env/],
    [{ ...good, snapshot_policy: { compression: {} } }, /enabled/],
    [{ ...good, snapshot_policy: { compression: { enabled: true, algorithm: 'gzip' } } }, /algorithm/],
    [{ ...good, snapshot_policy: { compression: { enabled: true, level: 20 } } }, /level/],
    [{ ...good, skip_guest_agent: 'yes' }, /skip_guest_agent/]
  ]
  for (const [body, message] of table) {
    const answer = await call('POST', '/instances', body)
    t.equal(answer.status, 400, JSON.stringify(body))
    t.match(answer.body, { code: 'invalid_request', message })
  }
  t.match((await call('POST', '/instances', { ...good, size: 'x' })).body, { code: 'invalid_size' })
  t.match((await call('POST', '/instances', { ...good, devices: ['x'] })).body, { code: 'plugin_disabled', message: /devices/ })
  t.match((await call('POST', '/instances', { ...good, hypervisor: 'xen' })).body, { code: 'plugin_disabled', message: /^hypervisor needs the plugin hypervisor-xen/ })
  t.match((await call('POST', '/instances', { ...good, image: 'missing' })).body, { code: 'invalid_request', message: /image/ })
})

t.test('an image without entrypoint and cmd needs one of them in the request', async (t) => {
  const { call, host } = await startApp(t)
  host.image = { ...host.image, entrypoint: undefined, cmd: undefined }
  t.match(await call('POST', '/instances', { name: 'a', image: 'test' }), { status: 400, body: { code: 'invalid_request', message: /^cmd: / } })
  t.equal((await call('POST', '/instances', { name: 'a', image: 'test', cmd: ['/bin/x'], overlay_size: '32MB' })).status, 201)
})

t.test('entrypoint and cmd are each the request\'s, else the image\'s; an empty list is none', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  const argv = async (name: string, fields: object): Promise<readonly string[] | undefined> => {
    await make(name, { ...fields })
    await waitFor(name, 'Running')
    return host.vm.workload?.argv
  }
  t.same(await argv('a', {}), ['/bin/tool', 'serve'])
  t.same(await argv('b', { cmd: ['x'] }), ['/bin/tool', 'x'])
  t.same(await argv('c', { entrypoint: ['/e'] }), ['/e', 'serve'])
  t.same(await argv('c2', { entrypoint: ['/e'], cmd: [] }), ['/e'])
  t.same(await argv('c3', { entrypoint: [] }), ['serve'])
  t.same(await argv('d', { entrypoint: ['/e'], cmd: ['x'] }), ['/e', 'x'])
  t.same(await argv('e', { entrypoint: [], cmd: ['/x'] }), ['/x'])
  for (const none of [{ entrypoint: [], cmd: [] }, { entrypoint: [''] }, { entrypoint: [], cmd: ['', 'x'] }]) {
    t.match(await call('POST', '/instances', { name: 'none', image: 'test', ...none }), { status: 400, body: { code: 'invalid_request', message: /^cmd: .*no program to run/ } })
  }
})

t.test('of 20 creates with one name, exactly one succeeds, and the others leave nothing', async (t) => {
  const { call, host, dataDir } = await startApp(t)
  const answers = await Promise.all(Array.from({ length: 20 }, async () => await call('POST', '/instances', { name: 'one', image: 'test', overlay_size: '32MB' })))
  t.equal(answers.filter(({ status }) => status === 201).length, 1)
  const lost = answers.filter(({ status }) => status !== 201)
  t.ok(lost.every(({ status, body, headers }) => status === 409 && body['code'] === 'name_conflict' && headers['x-should-retry'] === 'false'))
  t.equal(host.vms.length, 1)
  t.equal(host.held.size, 1)
  t.equal((await readdir(join(dataDir, 'instances'))).length, 1)
})

t.test('different names at once get different users', async (t) => {
  const { make, host } = await startApp(t)
  await Promise.all(Array.from({ length: 8 }, async (_, index) => await make(`n${index}`)))
  if (process.getuid?.() === 0) t.equal(new Set(host.vms.map(({ spec }) => spec.identity?.uid)).size, 8)
  t.equal(new Set(host.vms.map(({ spec }) => spec.directory)).size, 8)
})

t.test('a create that is repeated under its key is not done twice', async (t) => {
  const { call, host } = await startApp(t)
  const body = { name: 'once', image: 'test', overlay_size: '32MB' }
  const [first, second] = [await call('POST', '/instances', body, { 'idempotency-key': 'k1' }), await call('POST', '/instances', body, { 'idempotency-key': 'k1' })]
  t.equal(first.status, 201)
  t.equal(second.status, 201)
  t.equal(second.body['id'], first.body['id'])
  t.equal(host.vms.length, 1)
})

t.test('a launch that fails leaves nothing behind', async (t) => {
  const { call, host, dataDir } = await startApp(t)
  host.launchError = new Error('no memory')
  t.equal((await call('POST', '/instances', { name: 'a', image: 'test', overlay_size: '32MB' })).status, 500)
  t.same(await readdir(join(dataDir, 'instances')), [])
  t.equal(host.held.size, 0)
  t.same((await call('GET', '/instances')).text, '[]')
  host.launchError = undefined
  t.equal((await call('POST', '/instances', { name: 'a', image: 'test', overlay_size: '32MB' })).status, 201, 'the name is free again')
})

t.test('an instance is found by id, name or the beginning of its id', async (t) => {
  const { call, make } = await startApp(t)
  const id = await make('web')
  for (const ref of [id, 'web', id.slice(0, 12)]) t.equal((await call('GET', `/instances/${ref}`)).body['id'], id, ref)
  t.match(await call('GET', '/instances/nothing'), { status: 404, body: { code: 'not_found', message: 'instance nothing does not exist' } })
})

t.test('a list is filtered and cut into pages', async (t) => {
  const { call, make, host } = await startApp(t)
  const ids = [await make('a', { tags: { team: 'x' } }), await make('b', { tags: { team: 'x', env: 'p' } }), await make('c')]
  await host.vm.exit()
  await call('GET', '/instances/c/wait?state=Stopped')
  const names = async (query: string): Promise<unknown> => JSON.parse((await call('GET', `/instances${query}`)).text).map(({ name }: { name: string }) => name)
  t.same(await names(''), ['a', 'b', 'c'])
  t.same(await names('?tags[team]=x'), ['a', 'b'])
  t.same(await names('?tags[team]=x&tags[env]=p'), ['b'])
  t.same(await names('?state=Stopped'), ['c'])
  t.same(await names('?name=b'), ['b'])
  t.same(await names('?name=c&state=Running'), [])
  t.same(await names(`?limit=1&after=${ids[0]}`), ['b'])
  t.match((await call('GET', '/instances?limit=2')).headers['link'], new RegExp(`after=${ids[1]}.*rel="next"`))
  t.equal((await call('GET', '/instances?state=Sleeping')).status, 400)
  t.equal((await call('GET', '/instances?colour=red')).status, 400)
  t.equal((await call('GET', '/instances?limit=0')).status, 400)
})

t.test('states follow the guest and the VMM', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  host.behaviour = 'boot-only'
  await make('web')
  t.equal((await call('GET', '/instances/web')).body['state'], 'Initializing')
  host.vm.begin()
  t.equal((await waitFor('web', 'Running')).body['state'], 'Running')
  host.vm.set({ status: 'hung', reason: 'no answer for 2 s' })
  t.match((await call('GET', '/instances/web')).body, { state: 'Unknown', state_error: 'no answer for 2 s' })
  t.same((await call('GET', '/instances/web/wait?state=Stopped')).body, { state: 'Unknown', timed_out: false, state_error: 'no answer for 2 s' })
  t.match(await call('POST', '/instances/web/stop'), { status: 409, body: { code: 'invalid_state' } })
  host.vm.set({ status: 'running' })
  t.match((await call('GET', '/instances/web')).body, { state: 'Running', state_error: null })
  host.vm.set({ status: 'paused' })
  t.match((await call('GET', '/instances/web')).body, { state: 'Paused' })
  host.vm.set({ status: 'running' })
  await host.vm.exit({ exitCode: 7 })
  t.equal((await waitFor('web', 'Stopped')).body['state'], 'Stopped')
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 7, exit_message: 'exit code 7', started_at: /Z$/, stopped_at: /Z$/ })
})

t.test('a VMM that ends without a report leaves no exit code but a reason', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  host.vm.set({ status: 'gone' })
  await waitFor('web', 'Stopped')
  t.match((await call('GET', '/instances/web')).body, { exit_code: null, exit_message: /without reporting/ })
})

t.test('each call is refused in each state that forbids it', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  host.behaviour = 'boot-only'
  await make('web')
  const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  const calls = {
    start: async () => await call('POST', '/instances/web/start', {}),
    stop: async () => await call('POST', '/instances/web/stop'),
    stat: async () => await call('GET', '/instances/web/stat?path=/'),
    exec: async () => await call('GET', '/instances/web/exec', undefined, upgrade),
    cp: async () => await call('GET', '/instances/web/cp', undefined, upgrade)
  }
  const refusedIn = async (state: string, names: (keyof typeof calls)[]): Promise<void> => {
    t.equal((await call('GET', '/instances/web')).body['state'], state)
    for (const name of names) {
      const answer = await calls[name]()
      t.match(answer, { status: 409, body: { code: 'invalid_state', message: new RegExp(`${name}: .*current state: ${state}`) }, headers: { 'x-should-retry': 'false' } }, `${name} in ${state}`)
    }
  }
  await refusedIn('Initializing', ['start', 'stat', 'exec', 'cp'])
  host.vm.begin()
  await waitFor('web', 'Running')
  await refusedIn('Running', ['start'])
  host.vm.set({ status: 'paused' })
  await refusedIn('Paused', ['start', 'stop', 'stat', 'exec', 'cp'])
  host.vm.set({ status: 'hung' })
  await refusedIn('Unknown', ['start', 'stop', 'stat', 'exec', 'cp'])
  host.vm.set({ status: 'running' })
  host.vm.bus.emit('exited', { exitCode: 0, signal: 0, oom: false })
  await refusedIn('Shutdown', ['start', 'stop', 'stat', 'exec', 'cp'])
  await host.vm.exit()
  await waitFor('web', 'Stopped')
  await refusedIn('Stopped', ['stop', 'stat', 'exec', 'cp'])
})

t.test('stop asks the program first; start boots the same disk with the overrides, which persist', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  const stopped = await call('POST', '/instances/web/stop')
  t.match(stopped, { status: 200, body: { state: 'Stopped', exit_code: 143, exit_message: 'killed by signal 15 (terminated)' } })
  t.same(host.vm.shutdowns, [5000])
  t.equal((await call('POST', '/instances/web/start', { cmd: ['other'] })).status, 200)
  t.match((await waitFor('web', 'Running')).body, { state: 'Running' })
  t.same(host.vm.workload?.argv, ['/bin/tool', 'other'])
  t.match((await call('GET', '/instances/web')).body, { exit_code: null, stopped_at: null })
  await call('POST', '/instances/web/stop')
  t.equal((await call('POST', '/instances/web/start')).status, 200, 'a body is not needed')
  await waitFor('web', 'Running')
  t.same(host.vm.workload?.argv, ['/bin/tool', 'other'])
  t.equal(host.vms.length, 3)
  t.equal(new Set(host.vms.map(({ spec }) => spec.files.output)).size, 1)
  t.equal((await call('POST', '/instances/web/start', { cmd: 'x' })).status, 400)
})

t.test('a start that fails leaves the instance stopped as it was', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  await host.vm.exit({ exitCode: 4 })
  await waitFor('web', 'Stopped')
  host.launchError = new Error('no memory')
  t.equal((await call('POST', '/instances/web/start', { cmd: ['x'] })).status, 500)
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 4 })
  host.launchError = undefined
  await call('POST', '/instances/web/start')
  await waitFor('web', 'Running')
  t.same(host.vm.workload?.argv, ['/bin/tool', 'serve'], 'the override of the failed start did not stick')
})

t.test('of two stops at once the second waits and is then refused', async (t) => {
  const { call, make, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  const answers = await Promise.all([call('POST', '/instances/web/stop'), call('POST', '/instances/web/stop')])
  t.same(answers.map(({ status }) => status).sort(), [200, 409])
})

t.test('delete works in every state and leaves nothing', async (t) => {
  const { call, make, host, dataDir, waitFor } = await startApp(t)
  const states: Record<string, (name: string) => Promise<unknown> | void> = {
    running: async (name) => await waitFor(name, 'Running'),
    hung: async (name) => {
      await waitFor(name, 'Running')
      host.vm.set({ status: 'hung' })
    },
    stopped: async (name) => {
      await host.vm.exit()
      await waitFor(name, 'Stopped')
    }
  }
  for (const [name, prepare] of Object.entries(states)) {
    await make(name)
    await prepare(name)
    t.equal((await call('DELETE', `/instances/${name}`)).status, 204, name)
    t.equal((await call('GET', `/instances/${name}`)).status, 404)
    t.equal((await call('DELETE', `/instances/${name}`)).status, 404)
    t.equal(host.vm.state.status, 'gone')
  }
  await make('quick')
  await waitFor('quick', 'Running')
  await call('DELETE', '/instances/quick?graceful_shutdown=false')
  t.same(host.vm.shutdowns, [], 'the program was not asked')
  t.same(await readdir(join(dataDir, 'instances')), [])
  t.equal(host.held.size, 0)
  t.equal((await call('DELETE', '/instances/quick?graceful_shutdown=maybe')).status, 400)
})

t.test('a guest that says it has exited and stays is Shutdown, and can be deleted', async (t) => {
  const { make, host, waitFor, call } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  host.vm.bus.emit('exited', { exitCode: 0, signal: 0, oom: false })
  t.equal((await call('GET', '/instances/web')).body['state'], 'Shutdown')
  t.equal((await call('DELETE', '/instances/web')).status, 204)
})
