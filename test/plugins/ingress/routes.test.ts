// All calls about ingresses by the official SDK, over the whole application on a scripted host; nginx is real.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import Hypeman from '@onkernel/hypeman'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { plugin } from '../../../plugins/ingress/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { freePort } from '../../helpers/free-port.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
import type { InstanceWorkers } from '../../../plugins/instances/contract.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { skipReason } from './stage.ts'

const refusal = async (work: Promise<unknown>): Promise<unknown> => await work.then(() => undefined, (error: unknown) => error)

async function start (t: Test, options: StartOptions = {}): Promise<TestApp & { readonly port: number }> {
  const host = new ScriptedHost()
  const network = host.connect()
  // The guests of this network are nowhere, so any will do.
  network.namespace = '/proc/self/ns/net'
  const port = await freePort('127.0.0.1')
  const app = await startApp(t, { host, plugins: [plugin], sections: { ingress: { config: { listen: { address: '127.0.0.1', http: [port] }, limits: { workers: 1, connections: 64 } } } }, server: { stopInstancesOnExit: true }, ...options })
  return { ...app, port }
}

t.test('the SDK makes, lists, shows and deletes ingresses', { skip: skipReason() }, async (t) => {
  const { app, make, call, port } = await start(t, { listen: true })
  const id = await make('web')
  const sdk = new Hypeman({ baseURL: app.address(), apiKey: ADMIN_KEY, maxRetries: 0 })
  const made = await sdk.ingresses.create({
    name: 'site',
    tags: { team: 'a' },
    rules: [{ match: { hostname: 'web.test' }, target: { instance: 'web', port: 80 } }, { match: { hostname: '{instance}.preview.test', port }, target: { instance: '{instance}', port: 3000 }, request_header_auth: { header: 'X-Key', value: 's3cret'.repeat(8) } }]
  })
  t.match(made, { name: 'site', tags: { team: 'a' }, rules: [{ match: { hostname: 'web.test', port }, target: { instance: 'web', port: 80 }, tls: false, redirect_http: false }, { request_header_auth: { header: 'x-key', value: '********' } }] })
  t.same(await sdk.ingresses.get(made.id), made)
  t.same(await sdk.ingresses.get('site'), made)
  t.same(await sdk.ingresses.get(made.id.slice(0, 12)), made)
  t.same(await sdk.ingresses.list(), [made])
  t.same(await sdk.ingresses.list({ tags: { team: 'b' } }), [])
  const like = (name: string, hostname: string, instance = 'web') => ({ name, rules: [{ match: { hostname }, target: { instance, port: 80 } }] })
  t.match(await refusal(sdk.ingresses.create(like('site', 'other.test'))), { status: 409, error: { code: 'already_exists' } })
  t.match(await refusal(sdk.ingresses.create(like('two', 'WEB.test'))), { status: 409, error: { code: 'hostname_in_use', message: /the ingress site/ } })
  t.match(await refusal(sdk.ingresses.create(like('two', '*.preview.test'))), { status: 409, error: { code: 'hostname_in_use' } })
  t.match(await refusal(sdk.ingresses.create(like('two', 'two.test', 'nobody'))), { status: 400, error: { code: 'instance_not_found', message: /rules\[0\]\.target\.instance/ } })
  t.match(await refusal(sdk.ingresses.create(like('two', '10.0.0.1'))), { status: 400, error: { code: 'invalid_request' } })
  t.match(await refusal(sdk.ingresses.create(like('two', 'two.test', id.slice(0, 10)))), { status: 400 }, 'the beginning of an id is no target')
  t.match((await call('GET', '/instances/web/ingress')).body, { entries: [] })
  t.equal((await call('GET', '/instances/nobody/ingress')).status, 404)
  await sdk.ingresses.delete('site')
  t.match(await refusal(sdk.ingresses.get('site')), { status: 404 })
  t.match(await refusal(sdk.ingresses.delete('site')), { status: 404 })
  t.match(await sdk.ingresses.create(like('two', 'web.test')), { name: 'two' }, 'the host is free again')
})

t.test('an instance that works for another plugin is no target', { skip: skipReason() }, async (t) => {
  let workers: InstanceWorkers | undefined
  const user = definePlugin({
    manifest: { id: 'workers-user', provides: [], requires: ['workers'], config: Type.Object({}, { additionalProperties: false }) },
    create: (deps) => ({ async start () { workers = deps.workers } })
  })
  const { call, port } = await start(t, { plugins: [plugin, user] })
  const id = (await workers?.create({ name: 'build-1', image: 'test', argv: ['/bin/builder'], vcpus: 1, memoryBytes: 2 ** 28, network: 'direct', volumes: [], volumeOwner: 'builds', tags: {} }))?.id ?? ''
  for (const instance of ['build-1', id]) {
    const rules = [{ match: { hostname: 'web.test' }, target: { instance, port: 80 } }]
    t.match(await call('POST', '/ingresses', { name: 'site', rules }), { status: 400, body: { code: 'instance_not_found', message: /rules\[0\]\.target\.instance/ } }, instance)
  }
  const rules = [{ match: { hostname: '{instance}.any.test' }, target: { instance: '{instance}', port: 80 } }]
  t.equal((await call('POST', '/ingresses', { name: 'any', rules })).status, 201)
  const [answer] = await once(request({ port, host: '127.0.0.1', headers: { host: 'build-1.any.test' } }).end(), 'response') as [IncomingMessage]
  t.equal(answer.statusCode, 503)
  t.match(await text(answer), /There is no instance build-1/)
})

t.test('each call takes a scope of its own', { skip: skipReason() }, async (t) => {
  const { call, make } = await start(t)
  await make('web')
  const body = { name: 'site', rules: [{ match: { hostname: 'web.test' }, target: { instance: 'web', port: 80 } }] }
  const keyFor = async (scope: string): Promise<Record<string, string>> => ({ authorization: `Bearer ${String((await call('POST', '/keys', { name: scope, scopes: [scope] })).body['key'])}` })
  const [read, write, del] = [await keyFor('ingress:read'), await keyFor('ingress:write'), await keyFor('ingress:delete')]
  t.match(await call('POST', '/ingresses', body, read), { status: 403, body: { message: /ingress:write/ } })
  t.equal((await call('POST', '/ingresses', body, write)).status, 201)
  t.equal((await call('GET', '/ingresses', undefined, write)).status, 403)
  t.equal((await call('GET', '/ingresses/site', undefined, read)).status, 200)
  t.equal((await call('GET', '/instances/web/ingress', undefined, del)).status, 403)
  const routes = [['POST', '/ingresses', 'write'], ['GET', '/ingresses', 'read'], ['GET', '/ingresses/site', 'read'], ['DELETE', '/ingresses/site', 'delete'], ['GET', '/ingress-authority', 'read'], ['GET', '/instances/web/ingress', 'read'], ['GET', '/instances/web/ingress/stream', 'read']] as const
  const all = { read, write, delete: del, none: await keyFor('instance:read') }
  for (const [method, url, needs] of routes) {
    for (const [scope, headers] of Object.entries(all)) {
      if (scope !== needs) t.match(await call(method, url, method === 'POST' ? body : undefined, headers), { status: 403, body: { message: new RegExp(`ingress:${needs}`) } }, `${method} ${url} with ${scope}`)
    }
  }
  t.equal((await call('DELETE', '/ingresses/site', undefined, del)).status, 204)
})

t.test('without a port, or a network of guests, it is skipped and has no routes', { skip: missingPrivileges() ?? false }, async (t) => {
  for (const [config, reason] of [[{}, /listen names no port/], [{ listen: { http: [1] } }, /networking does not run/]] as const) {
    const host = new ScriptedHost()
    const { app, call } = await startApp(t, { host, plugins: [plugin], sections: { ingress: { config } } })
    t.match(app.plugins.list().find(({ id }) => id === 'ingress'), { state: 'skipped', reason })
    t.equal((await call('GET', '/ingresses')).status, 404)
  }
})

t.test('a port that another program has is named', { skip: skipReason() }, async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await t.rejects(start(t, { sections: { ingress: { config: { listen: { address: '127.0.0.1', http: [port] } } } } }), { message: new RegExp(`port ${port} of 127\\.0\\.0\\.1 is in use`) })
})
