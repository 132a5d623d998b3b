// The whole kernel with plugins in it: start, routes, reports, stop.
import { once } from 'node:events'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Type } from 'typebox'
import { buildApp } from '../../core/app.ts'
import { listCopies } from '../../core/data/copies/kept.ts'
import { definePlugin, SkipPlugin, type Plugin } from '../../core/plugins/manifest.ts'
import { ADMIN_KEY, authorization, bareApp, noBuiltIns, temporaryFolder } from './bare-app.ts'

declare module '../../core/plugins/manifest.ts' {
  interface Cradle { readonly testCounter: { next (): number } }
}

const closed = Type.Object({}, { additionalProperties: false })
const plugin = (id: string, parts: Partial<Omit<Plugin, 'manifest'>> & Partial<Plugin['manifest']> = {}): Plugin => {
  const { provides = [], requires = [], optional, scopes, migrations, ...functions } = parts
  return { manifest: { id, provides, requires, optional, scopes, migrations, config: closed }, ...functions }
}

const counter = definePlugin({
  manifest: { id: 'counter', provides: ['testCounter'], requires: [], config: Type.Object({ first: Type.Integer({ default: 1 }) }, { additionalProperties: false }) },
  create (_deps, config) {
    let value = config.first
    return { services: { testCounter: { next: () => value++ } } }
  }
})

t.test('services, routes and settings come together, and GET /plugins tells all', async (t) => {
  const user = plugin('user', {
    requires: ['testCounter', 'plugins'],
    create: ({ testCounter, plugins }) => ({
      async routes (http) {
        http.get('/count', { config: { scope: null } }, async () => ({ n: testCounter.next(), off: plugins.isStarted('off'), user: plugins.isStarted('user') }))
      }
    })
  })
  const failing = plugin('failing', { create: () => ({ async start () { throw new Error('no luck') } }) })
  const skipping = plugin('skipping', { provides: ['testCounter'], create () { throw new SkipPlugin('not here') } })
  const { app } = await bareApp(t, {
    plugins: { counter: { config: { first: 7 } }, off: { enabled: false }, failing: { onFailure: 'continue' }, skipping: { enabled: false } }
  }, { plugins: [user, counter, plugin('off', { create: () => ({ async routes (http) { http.get('/off', { config: { scope: null } }, async () => 1) } }) }), failing, skipping] })
  await app.start({ listen: false })
  t.strictSame((await app.http.inject('/count')).json(), { n: 7, off: false, user: true })
  t.equal((await app.http.inject('/off')).statusCode, 404)
  const answer = await app.http.inject({ url: '/plugins', headers: authorization })
  t.equal(answer.statusCode, 200)
  t.match(answer.json(), [
    { id: 'counter', state: 'started', reason: null, start_ms: Number },
    { id: 'failing', state: 'failed', reason: 'no luck', start_ms: null },
    { id: 'off', state: 'disabled', reason: 'turned off in the configuration', start_ms: null },
    { id: 'skipping', state: 'disabled' },
    { id: 'user', state: 'started' }
  ])
  t.equal((await app.http.inject('/plugins')).statusCode, 401)
})

t.test('the server listens where it says, and stops once, in order', async (t) => {
  const events: string[] = []
  const named = (id: string, more: Partial<Plugin> = {}): Plugin =>
    plugin(id, { create: () => ({ async start () { events.push(`start ${id}`) }, async stop () { events.push(`stop ${id}`) } }), ...more })
  const { app, lines } = await bareApp(t, {}, { plugins: [named('b'), named('a')] })
  t.throws(() => app.address(), { message: 'the server does not listen yet' })
  await app.start()
  const health = await fetch(`${app.address()}/health`)
  t.strictSame([health.status, await health.json()], [200, { status: 'ok' }])
  t.strictSame(lines.filter(line => line['msg'] === 'listening').map(line => line['url']), [app.address()])
  await Promise.all([app.stop(), app.stop()])
  t.strictSame(events, ['start a', 'start b', 'stop b', 'stop a'])
  await t.rejects(fetch(`${lines.find(line => line['msg'] === 'listening')?.['url']}/health`))
})

t.test('of an address that is taken, the error names the key', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const taken = `127.0.0.1:${String(Object(other.address()).port)}`
  const free = '127.0.0.1:0'
  for (const [key, listen, metrics] of [['server.metrics.listen', free, taken], ['server.listen', taken, free]] as const) {
    const dataDir = await temporaryFolder(t)
    const { app: refused } = await bareApp(t, { server: { listen, metrics: { listen: metrics }, dataDir } })
    await t.rejects(refused.start(), { code: 'cannot_listen', message: `${key}: ${taken} is taken: something else listens there` })
  }
})

t.test('services can still be read while plugins stop', async (t) => {
  let seen: unknown
  const { app, dataDir } = await bareApp(t, {}, {
    plugins: [counter, plugin('late', {
      requires: ['testCounter', 'server', 'database'],
      create: ({ testCounter, server, database }) => ({
        async start () { testCounter.next() },
        async stop () { seen = [testCounter.next(), server.dataDir, (await database.raw('SELECT 1 AS one'))[0].one] }
      })
    })]
  })
  await app.start({ listen: false })
  await app.stop()
  t.strictSame(seen, [2, dataDir, 1], 'and they are the same ones')
})

t.test('a plugin that fails ends the start; nothing is left, and the folder is free', async (t) => {
  const events: string[] = []
  const first = plugin('a', { create: () => ({ async stop () { events.push('stop a') } }) })
  const { app, dataDir } = await bareApp(t, {}, { plugins: [first, plugin('b', { create: () => ({ async start () { throw new Error('boom') } }) })] })
  await t.rejects(app.start(), { name: 'PluginStartFailed', message: 'plugin b did not start: boom' })
  t.strictSame(events, ['stop a'])
  t.throws(() => app.address())
  const again = await buildApp({ server: { dataDir } }, { environment: {}, builtIns: noBuiltIns, logStream: { write: () => undefined } })
  await again.stop()
})

t.test('a stop during the start ends it, and both calls come to their end', async (t) => {
  let begun: () => void = () => undefined
  const inStart = new Promise<void>(resolve => { begun = resolve })
  const { app } = await bareApp(t, {}, { plugins: [plugin('slow', { create: () => ({ start: () => { begun(); return new Promise(() => undefined) } }) })] })
  const starting = app.start()
  await inStart
  await Promise.all([app.stop(), t.rejects(starting, { message: /the server is stopping/ })])
})

t.test('one data folder serves one application at a time, and an unused one lets go of it', async (t) => {
  const { app, dataDir } = await bareApp(t)
  const second = (): ReturnType<typeof buildApp> => buildApp({ server: { dataDir } }, { environment: {}, builtIns: noBuiltIns, logStream: { write: () => undefined } })
  await t.rejects(second(), { name: 'DataFolderInUse' })
  await app.stop()
  await (await second()).stop()
})

t.test('a plugin\'s migrations have run before it starts, and the database is private', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'migrations'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'migrations/0001-create-notes.js'),
    "export const up = db => db.schema.createTable('notes_notes', table => { table.string('text', 20) })\nexport const down = db => db.schema.dropTable('notes_notes')\n")
  const { app, dataDir } = await bareApp(t, {}, {
    plugins: [plugin('notes', {
      requires: ['database'],
      migrations: pathToFileURL(join(folder, 'migrations/')),
      create: ({ database }) => ({ async start () { await database('notes_notes').insert({ text: 'hello' }) } })
    })]
  })
  await app.start({ listen: false })
  t.ok(app.plugins.isStarted('notes'))
  t.equal(((await stat(join(dataDir, 'berth.db'))).mode & 0o777).toString(8), '600')
})

t.test('a plugin without a key\'s scope on its route, or with a service it did not declare, does not come up', async (t) => {
  const open = await bareApp(t, {}, { plugins: [plugin('open', { create: () => ({ async routes (http) { http.get('/open', async () => 1) } }) })] })
  await t.rejects(open.app.start({ listen: false }), { message: /routes of plugin open could not be mounted: .*scope/ })
  const strange = await bareApp(t, {}, { plugins: [plugin('strange', { scopes: ['note:read'], create: () => ({ async routes (http) { http.get('/notes', { config: { scope: 'note:write' } }, async () => 1) } }) })] })
  await t.rejects(strange.app.start({ listen: false }), { message: /routes of plugin strange could not be mounted: route .*\/notes asks for the scope note:write, which is not in the manifest/ })
  const sneaky = await bareApp(t, {}, { plugins: [plugin('sneaky', { create: (deps) => ({ async start () { await deps.database.raw('SELECT 1') } }) })] })
  await t.rejects(sneaky.app.start({ listen: false }), { message: /plugin sneaky reads "database", which its manifest does not declare/ })
})

t.test('a plugin that does not make what it promised, or whose migration fails, is named', async (t) => {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, '0001-do-nothing.js'), 'export const up = 1\n')
  const lazy = await bareApp(t, {}, { plugins: [plugin('lazy', { provides: ['testCounter'] })] })
  await t.rejects(lazy.app.start({ listen: false }), { name: 'PluginStartFailed', message: 'plugin lazy did not start: its manifest promises testCounter, which its create did not return' })
  const broken = await bareApp(t, {}, { plugins: [plugin('broken', { migrations: pathToFileURL(`${folder}/`) })] })
  await t.rejects(broken.app.start({ listen: false }), { name: 'PluginStartFailed', message: /^the tables of plugin broken could not be brought up to date: / })
})

t.test('of a plugin without whose tables the server is to go on, only that plugin fails; one whose folder of migrations is gone is named', async (t) => {
  const folder = await temporaryFolder(t)
  const gone = pathToFileURL(join(folder, 'gone/'))
  const broken = plugin('broken', { provides: ['testCounter'], migrations: gone })
  const user = plugin('user', { requires: ['testCounter'] })
  const aborting = await bareApp(t, {}, { plugins: [broken] })
  await t.rejects(aborting.app.start({ listen: false }), { name: 'PluginStartFailed', message: /^the tables of plugin broken could not be brought up to date: .*gone/ })
  const { app, lines } = await bareApp(t, { plugins: { broken: { onFailure: 'continue' } } }, { plugins: [broken, user, plugin('other')] })
  await app.start({ listen: false })
  t.match(app.plugins.list(), [{ id: 'broken', state: 'failed', reason: /brought up to date/ }, { id: 'other', state: 'started' }, { id: 'user', state: 'blocked' }])
  t.match(lines.find(({ plugin: id, err }) => id === 'broken' && err !== undefined), { msg: 'plugin failed; going on without it' })
})

t.test('while a plugin is left out for its tables, the database is copied before each later upgrade, and not again before what that copy is of', async (t) => {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  const migrate = async (id: string, name: string, up: string): Promise<URL> => {
    const place = join(folder, id)
    await mkdir(place, { recursive: true })
    await writeFile(join(place, `${name}.js`), `export const up = async db => { ${up} }\nexport const down = async () => undefined\n`)
    return pathToFileURL(`${place}/`)
  }
  const notes = plugin('notes', { migrations: await migrate('notes', '0001-notes', '') })
  const broken = plugin('broken', { migrations: await migrate('broken', '0001-broken', 'throw new Error("cannot be done")') })
  const server = { dataDir: join(folder, 'data'), listen: '127.0.0.1:0' }
  const copiesAfterStart = async (plugins: readonly Plugin[], keepCopies = 3): Promise<unknown> => {
    const { app } = await bareApp(t, { server, database: { keepCopies }, plugins: plugins.includes(broken) ? { broken: { onFailure: 'continue' } } : {} }, { plugins })
    await app.start({ listen: false })
    t.ok(app.plugins.isStarted('notes'))
    await app.stop()
    return (await listCopies(server.dataDir)).map(({ number, reason, open }) => ({ number, reason, open }))
  }
  t.same(await copiesAfterStart([notes]), [])
  const first = { number: 1, reason: 'before broken/0001-broken', open: true }
  t.same(await copiesAfterStart([notes, broken]), [first])
  t.same(await copiesAfterStart([notes, broken]), [first])
  await migrate('notes', '0002-more', '')
  const both = [first, { number: 2, reason: 'before broken/0001-broken, notes/0002-more', open: true }]
  t.same(await copiesAfterStart([notes, broken]), both)
  t.same(await copiesAfterStart([notes, broken]), both)
  await migrate('notes', '0003-yet-more', '')
  const last = { number: 3, reason: 'before broken/0001-broken, notes/0003-yet-more', open: true }
  t.same(await copiesAfterStart([notes, broken], 1), [first, last], 'the one from before the upgrade that is not finished stays besides')
  t.same(await copiesAfterStart([notes]), [{ ...first, open: false }, { ...last, open: false }])
})

t.test('a stop ends a start whose routes never come to their end', async (t) => {
  let begun: () => void = () => undefined
  const inRoutes = new Promise<void>(resolve => { begun = resolve })
  const { app } = await bareApp(t, {}, { plugins: [plugin('slow', { create: () => ({ routes: async () => { begun(); await new Promise<void>(() => undefined) } }) })] })
  const starting = app.start({ listen: false })
  await inRoutes
  await Promise.all([app.stop(), t.rejects(starting, { message: /the server is stopping/ })])
})

t.test('the key in the configuration opens the API for this process', async (t) => {
  const { app } = await bareApp(t)
  await app.start({ listen: false })
  for (const [key, status] of [[ADMIN_KEY, 200], ['another-key-of-20-chars', 401]] as const) {
    t.equal((await app.http.inject({ url: '/plugins', headers: { authorization: `Bearer ${key}` } })).statusCode, status)
  }
})

t.test('metrics are served on a listener of their own', async (t) => {
  const { app, lines } = await bareApp(t)
  await app.start()
  const port = lines.find(line => line['msg'] === 'metrics served')?.['port']
  t.match(await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text(), /process_cpu_seconds_total/)
  t.equal((await fetch(`${app.address()}/metrics`)).status, 404)
})
