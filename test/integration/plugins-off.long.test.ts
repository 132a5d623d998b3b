// What each plugin's absence does to the rest of the real server.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildApp, type App } from '../../core/app.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { seedDataFolder } from '../../setup/server/process.ts'
import { DELETED, skipWithout, withoutDeleted } from '../../setup/structure/deleted.ts'

const ADMIN_KEY = 'an-admin-key-for-this-test'
const headers = { authorization: `Bearer ${ADMIN_KEY}` }

/** The server with its built-in plugins but for `off`; no kernel is fetched. */
async function serverWithout (t: Test, ...off: readonly string[]): Promise<App> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-off-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  await seedDataFolder(join(folder, 'data'))
  const errors: string[] = []
  const disabled = withoutDeleted(Object.fromEntries(off.map((id) => [id, { enabled: false }])))
  const app = await buildApp({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } },
    plugins: { ...(off.includes('guest') ? {} : { guest: { config: { prepare: false } } }), 'hypervisor-firecracker': { config: { binary: '/no/firecracker' } }, 'hypervisor-cloud-hypervisor': { config: { binary: '/no/cloud-hypervisor' } }, ...disabled }
  }, { environment: {}, logStream: { write: (line) => { if (/"level":"error"/.test(line)) errors.push(line) } } })
  t.teardown(() => app.stop())
  await app.start()
  t.same(errors, [], 'nothing of that is an error')
  return app
}

type Method = 'GET' | 'POST'

async function ask (app: App, method: Method, url: string): Promise<{ status: number, message: unknown }> {
  const { statusCode, body } = await app.http.inject({ method, url, headers, ...method === 'POST' ? { payload: {} } : {} })
  return { status: statusCode, message: statusCode >= 400 && body.startsWith('{') ? JSON.parse(body).message : undefined }
}

async function statusOf (app: App, method: Method, url: string): Promise<number> {
  return (await ask(app, method, url)).status
}

/** A thing that is not there is 404, too: only the message tells that its route is not. */
async function isNoRoute (t: Test, app: App, method: Method, url: string): Promise<void> {
  t.match(await ask(app, method, url), { status: 404, message: `there is no ${method} ${url}` }, `${method} ${url}`)
}

/** the routes of each plugin that has some of its own */
const ROUTES: Readonly<Record<string, Readonly<Record<Method, readonly string[]>>>> = {
  registry: { GET: ['/v2/'], POST: [] },
  snapshots: { GET: ['/snapshots', '/snapshots/x', '/instances/x/snapshot-schedule'], POST: ['/snapshots/x/fork', '/instances/x/snapshots', '/instances/x/snapshots/y/restore'] },
  ports: { GET: ['/ports', '/instances/x/ports'], POST: ['/instances/x/ports'] },
  pushes: { GET: ['/pushes', '/pushes/x'], POST: ['/pushes'] },
  volumes: { GET: ['/volumes', '/volumes/x'], POST: ['/volumes'] },
  builds: { GET: ['/builds', '/builds/x', '/builds/x/events', '/builders', '/builders/x'], POST: ['/builds', '/builders', '/builders/x/prune'] },
  resources: { GET: ['/resources'], POST: [] },
  instances: { GET: ['/instances', '/instances/x'], POST: ['/instances'] },
  images: { GET: ['/images', '/images/x'], POST: ['/images'] },
  events: { GET: ['/events/snapshot'], POST: [] },
  host: { GET: ['/host/checks', '/host/processes', '/host/log'], POST: [] },
  console: { GET: ['/console', '/console/', '/console/session'], POST: ['/console/session', '/console/tickets'] },
  webhooks: { GET: ['/webhooks', '/webhooks/x'], POST: ['/webhooks'] }
}

async function eachRoute (plugin: string, visit: (method: Method, url: string) => Promise<void>): Promise<void> {
  for (const method of ['GET', 'POST'] as const) for (const url of ROUTES[plugin]?.[method] ?? []) await visit(method, url)
}

async function hasNoRoutes (t: Test, app: App, plugin: string): Promise<void> {
  await eachRoute(plugin, async (method, url) => await isNoRoute(t, app, method, url))
}

t.test('with every plugin on, all of them start but for the one that has no port to listen on, and those whose VMM is not here', { skip: missingPrivileges() ?? false }, async (t) => {
  const app = await serverWithout(t)
  t.same(app.plugins.list().map(({ id, state }) => `${id} ${state}`).sort(), [
    'builds started', 'console started', 'devices started', 'egress started', 'events started', 'guest started', 'host started', 'hypervisor-cloud-hypervisor skipped', 'hypervisor-firecracker skipped', 'hypervisor-qemu started', 'hypervisor-qemu-microvm started', 'hypervisor-vz skipped', 'images started', 'ingress skipped', 'instances started', 'networking started', 'ports started', 'pushes started', 'registry started', 'resources started', 'snapshots started', 'tracing skipped', 'volumes started', 'webhooks started'
  ].filter((line) => !DELETED.includes(line.split(' ')[0] ?? '')))
  for (const plugin of Object.keys(withoutDeleted(ROUTES))) {
    await eachRoute(plugin, async (method, url) => { t.notMatch((await ask(app, method, url)).message, /^there is no (GET|POST) /, `${method} ${url} of ${plugin}`) })
  }
})

t.test('without networking there is no way out to mediate, and instances work on', async (t) => {
  const app = await serverWithout(t, 'networking')
  if (!DELETED.includes('egress')) t.match(app.plugins.list().find(({ id }) => id === 'egress'), { state: 'skipped', reason: /networking/ })
  t.match(app.plugins.list().find(({ id }) => id === 'ports'), { state: 'skipped', reason: /networking/ })
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without the registry its routes are gone, and images and instances work on', async (t) => {
  const app = await serverWithout(t, 'registry', 'builds')
  t.match(app.plugins.list().find(({ id }) => id === 'registry'), { state: 'disabled' })
  await hasNoRoutes(t, app, 'registry')
  t.equal(await statusOf(app, 'GET', '/images'), 200)
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without snapshots their routes are gone, and instances work on', async (t) => {
  const app = await serverWithout(t, 'snapshots')
  await hasNoRoutes(t, app, 'snapshots')
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without ports their routes are gone, and an instance that wants one is refused', async (t) => {
  const app = await serverWithout(t, 'ports')
  await hasNoRoutes(t, app, 'ports')
  const answer = await app.http.inject({ method: 'POST', url: '/instances', headers, payload: { name: 'a', image: 'b', ports: [{ instance_port: 80 }] } })
  t.match(answer.json(), { code: 'plugin_disabled', message: /^ports needs the plugin ports/ })
})

t.test('without pushes their routes are gone, and images work on', async (t) => {
  const app = await serverWithout(t, 'pushes')
  await hasNoRoutes(t, app, 'pushes')
  t.equal(await statusOf(app, 'GET', '/images'), 200)
})

t.test('without webhooks their routes are gone, and events are told all the same; without events there are none', async (t) => {
  const app = await serverWithout(t, 'webhooks')
  await hasNoRoutes(t, app, 'webhooks')
  t.equal(await statusOf(app, 'GET', '/events/snapshot'), 200)
  await t.rejects(serverWithout(t, 'events'), { message: /plugin webhooks requires "eventFeed", which no enabled plugin provides/ })
})

t.test('without the console its routes are gone, and the API is what it is with it', { skip: skipWithout('console') }, async (t) => {
  const [on, off] = [await serverWithout(t), await serverWithout(t, 'console')]
  t.match(off.plugins.list().find(({ id }) => id === 'console'), { state: 'disabled' })
  await hasNoRoutes(t, off, 'console')
  t.equal(await statusOf(off, 'GET', '/instances'), 200)
  const [withPages, without] = await Promise.all([on, off].map(async ({ http }) => (await http.inject('/openapi.json')).json()))
  t.same(without, withPages)
})

t.test('without the registry, images are pushed on all the same', { skip: skipWithout('pushes') }, async (t) => {
  const app = await serverWithout(t, 'registry', 'builds')
  t.equal(await statusOf(app, 'GET', '/pushes'), 200)
})

t.test('without volumes their routes are gone, and an instance that wants one is refused', async (t) => {
  const app = await serverWithout(t, 'volumes', 'builds')
  await hasNoRoutes(t, app, 'volumes')
  const answer = await app.http.inject({ method: 'POST', url: '/instances', headers, payload: { name: 'a', image: 'b', volumes: [{ volume_id: 'v', mount_path: '/v' }] } })
  t.match(answer.json(), { code: 'plugin_disabled', message: /^volumes needs the plugin volumes/ })
  t.equal(await statusOf(app, 'GET', '/instances'), 200)
})

t.test('without builds their routes are gone, and instances, images and volumes work on', async (t) => {
  const app = await serverWithout(t, 'builds')
  await hasNoRoutes(t, app, 'builds')
  for (const url of ['/instances', '/images', ...DELETED.includes('volumes') ? [] : ['/volumes']]) t.equal(await statusOf(app, 'GET', url), 200, url)
})

t.test('without resources nobody asks for room, and what needs them is refused', async (t) => {
  const app = await serverWithout(t, 'resources')
  await hasNoRoutes(t, app, 'resources')
  const document = (await app.http.inject('/openapi.json')).json()
  t.same(document.paths['/resources/memory/reclaim'].post.tags, ['server'], 'what is left under that path is in a group that the document has')
  const { host } = (await app.http.inject({ url: '/capabilities', headers })).json()
  t.notOk(host.cgroups)
  for (const [field, value] of [['disk_io_bps', '10MB/s'], ['hotplug_size', '1GB']] as const) {
    const answer = await app.http.inject({ method: 'POST', url: '/instances', headers, payload: { name: 'a', image: 'b', [field]: value } })
    t.match(answer.json(), { code: 'plugin_disabled', message: new RegExp(`^${field} needs the plugin resources`) })
  }
})

t.test('without instances, resources tell what there is', { skip: skipWithout('resources') }, async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds')
  t.match((await app.http.inject({ url: '/resources', headers })).json(), { cpu: { allocated: 0, source: 'detected' }, allocations: [] })
})

t.test('without instances there is none that a port could be published for', { skip: skipWithout('ports') }, async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds')
  t.equal(await statusOf(app, 'GET', '/ports'), 200)
  for (const method of ['GET', 'POST'] as const) t.match((await app.http.inject({ method, url: '/instances/x/ports', headers, ...method === 'POST' ? { payload: { instance_port: 80 } } : {} })).json(), { code: 'not_found' }, method)
})

t.test('without instances, images and the registry work on', async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds')
  await hasNoRoutes(t, app, 'instances')
  t.equal(await statusOf(app, 'GET', '/images'), 200)
  t.equal(await statusOf(app, 'GET', '/v2/'), 200)
})

t.test('without instances, nothing needs a hypervisor, a guest or images', async (t) => {
  const app = await serverWithout(t, 'instances', 'snapshots', 'builds', 'hypervisor-qemu', 'guest', 'images', 'pushes')
  await hasNoRoutes(t, app, 'images')
  t.equal(await statusOf(app, 'GET', '/v2/'), 200)
  t.match(app.plugins.list().find(({ id }) => id === 'hypervisor-qemu-microvm'), { state: 'skipped', reason: /hypervisor-qemu does not run/ })
})

t.test('a plugin that instances cannot do without is asked for before anything starts', async (t) => {
  await t.rejects(serverWithout(t, 'images'), { message: /plugin instances requires "images", which no enabled plugin provides/ })
  await t.rejects(serverWithout(t, 'hypervisor-qemu', 'hypervisor-qemu-microvm', 'hypervisor-firecracker', 'hypervisor-cloud-hypervisor', 'hypervisor-vz'), { message: /plugin instances requires "hypervisors", which no enabled plugin provides/ })
  for (const [off, plugin, key] of [['images', 'pushes', 'imageSources'], ['instances', 'snapshots', 'instanceCopies'], ['volumes', 'builds', 'volumes'], ['registry', 'builds', 'registry'], ['instances', 'builds', 'workers']] as const) {
    if (DELETED.includes(plugin)) continue
    await t.rejects(serverWithout(t, off), { message: new RegExp(`plugin ${plugin} requires "${key}", which no enabled plugin provides`) })
  }
  const everything = serverWithout(t, 'guest', 'images')
  await t.rejects(everything, { message: /plugin instances requires "guest"/ })
  await t.rejects(everything, { message: /plugin instances requires "images"/ }, 'all problems are told at once')
})
