// What each plugin's absence does to the rest of the real server.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildApp, type App } from '../../core/app.ts'

const ADMIN_KEY = 'an-admin-key-for-this-test'
const headers = { authorization: `Bearer ${ADMIN_KEY}` }

/** The server with its built-in plugins but for `off`; no kernel is fetched. */
async function serverWithout (t: Test, ...off: readonly string[]): Promise<App> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-off-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  const disabled = Object.fromEntries(off.map((id) => [id, { enabled: false }]))
  const app = await buildApp({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } },
    plugins: { ...(off.includes('guest') ? {} : { guest: { config: { prepare: false } } }), ...disabled }
  }, { environment: {}, logStream: { write: () => {} } })
  t.teardown(() => app.stop())
  await app.start()
  return app
}

async function statusOf (app: App, method: 'GET' | 'POST', url: string): Promise<number> {
  return (await app.http.inject({ method, url, headers, ...method === 'POST' ? { payload: {} } : {} })).statusCode
}

t.test('with every plugin on, all of them start', async (t) => {
  const app = await serverWithout(t)
  t.same(app.plugins.list().map(({ id, state }) => `${id} ${state}`).sort(), [
    'builds started', 'devices started', 'egress started', 'guest started', 'hypervisor-qemu started', 'images started', 'instances started', 'networking started', 'pushes started', 'registry started', 'resources started', 'snapshots started', 'volumes started'
  ])
})

t.test('without networking there is no way out to mediate, and instances work on', async (t) => {
  const app = await serverWithout(t, 'networking')
  t.match(app.plugins.list().find(({ id }) => id === 'egress'), { state: 'skipped', reason: /networking/ })
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without the registry its routes are gone, and images and instances work on', async (t) => {
  const app = await serverWithout(t, 'registry', 'builds')
  t.match(app.plugins.list().find(({ id }) => id === 'registry'), { state: 'disabled' })
  t.equal(await statusOf(app, 'GET', '/v2/'), 404)
  t.equal(await statusOf(app, 'GET', '/images'), 200)
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without snapshots their routes are gone, and instances work on', async (t) => {
  const app = await serverWithout(t, 'snapshots')
  for (const url of ['/snapshots', '/snapshots/x', '/instances/x/snapshot-schedule']) t.equal(await statusOf(app, 'GET', url), 404, url)
  for (const url of ['/snapshots/x/fork', '/instances/x/snapshots', '/instances/x/snapshots/y/restore']) t.equal(await statusOf(app, 'POST', url), 404, url)
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without pushes their routes are gone, and images work on', async (t) => {
  const app = await serverWithout(t, 'pushes')
  t.equal(await statusOf(app, 'GET', '/pushes'), 404)
  t.equal(await statusOf(app, 'POST', '/pushes'), 404)
  t.equal(await statusOf(app, 'GET', '/images'), 200)
})

t.test('without the registry, images are pushed on all the same', async (t) => {
  const app = await serverWithout(t, 'registry', 'builds')
  t.equal(await statusOf(app, 'GET', '/pushes'), 200)
})

t.test('without volumes their routes are gone, and an instance that wants one is refused', async (t) => {
  const app = await serverWithout(t, 'volumes', 'builds')
  t.equal(await statusOf(app, 'GET', '/volumes'), 404)
  const answer = await app.http.inject({ method: 'POST', url: '/instances', headers, payload: { name: 'a', image: 'b', volumes: [{ volume_id: 'v', mount_path: '/v' }] } })
  t.match(answer.json(), { code: 'plugin_disabled', message: /^volumes needs the plugin volumes/ })
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without builds their routes are gone, and instances, images and volumes work on', async (t) => {
  const app = await serverWithout(t, 'builds')
  for (const url of ['/builds', '/builds/x', '/builds/x/events', '/builders', '/builders/x']) t.equal(await statusOf(app, 'GET', url), 404, url)
  for (const url of ['/builds', '/builders', '/builders/x/prune']) t.equal(await statusOf(app, 'POST', url), 404, url)
  for (const url of ['/instances', '/images', '/volumes']) t.equal(await statusOf(app, 'GET', url), 200, url)
})

t.test('without resources nobody asks for room, and what needs them is refused', async (t) => {
  const app = await serverWithout(t, 'resources')
  t.equal(await statusOf(app, 'GET', '/resources'), 404)
  const { host } = (await app.http.inject({ url: '/capabilities', headers })).json()
  t.notOk(host.cgroups)
  for (const [field, value] of [['disk_io_bps', '10MB/s'], ['hotplug_size', '1GB']] as const) {
    const answer = await app.http.inject({ method: 'POST', url: '/instances', headers, payload: { name: 'a', image: 'b', [field]: value } })
    t.match(answer.json(), { code: 'plugin_disabled', message: new RegExp(`^${field} needs the plugin resources`) })
  }
})

t.test('without instances, resources tell what there is', async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds')
  t.match((await app.http.inject({ url: '/resources', headers })).json(), { cpu: { allocated: 0, source: 'detected' }, allocations: [] })
})

t.test('without instances, images and the registry work on', async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds')
  t.equal(await statusOf(app, 'GET', '/instances'), 404)
  t.equal(await statusOf(app, 'POST', '/instances'), 404)
  t.equal(await statusOf(app, 'GET', '/images'), 200)
  t.equal(await statusOf(app, 'GET', '/v2/'), 200)
})

t.test('without instances, nothing needs a hypervisor, a guest or images', async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds', 'hypervisor-qemu', 'guest', 'images', 'pushes')
  t.equal(await statusOf(app, 'GET', '/images'), 404)
  t.equal(await statusOf(app, 'GET', '/v2/'), 200)
})

t.test('a plugin that instances cannot do without is asked for before anything starts', async (t) => {
  await t.rejects(serverWithout(t, 'images'), { message: /plugin instances requires "images", which no enabled plugin provides/ })
  await t.rejects(serverWithout(t, 'hypervisor-qemu'), { message: /plugin instances requires "hypervisors", which no enabled plugin provides/ })
  await t.rejects(serverWithout(t, 'images'), { message: /plugin pushes requires "imageSources", which no enabled plugin provides/ })
  await t.rejects(serverWithout(t, 'instances'), { message: /plugin snapshots requires "instanceCopies", which no enabled plugin provides/ })
  for (const [off, key] of [['volumes', 'volumes'], ['registry', 'registry'], ['instances', 'workers']] as const) {
    await t.rejects(serverWithout(t, off), { message: new RegExp(`plugin builds requires "${key}", which no enabled plugin provides`) })
  }
  const everything = serverWithout(t, 'guest', 'images')
  await t.rejects(everything, { message: /plugin instances requires "guest"/ })
  await t.rejects(everything, { message: /plugin instances requires "images"/ }, 'all problems are told at once')
})
