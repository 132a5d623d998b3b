// The shapes of requests and answers about snapshots, who may send them, and what the OpenAPI document says.
import t from 'tap'
import { startWithSnapshots } from './app.ts'

const NOBODY = '/instances/nobody'
const compression = (fields: object): object => ({ kind: 'Standby', compression: { enabled: true, ...fields } })

t.test('every wrong field of a request is named', async (t) => {
  const { call, make, waitFor } = await startWithSnapshots(t)
  await make('web')
  await waitFor('web', 'Running')
  const create = '/instances/web/snapshots'
  const fork = '/snapshots/x/fork'
  const restore = '/instances/web/snapshots/x/restore'
  const schedule = '/instances/web/snapshot-schedule'
  const set = (fields: object): object => ({ interval: '1h', retention: { max_count: 1 }, ...fields })
  const table: readonly [method: 'POST' | 'PUT' | 'GET', url: string, body: unknown, message: RegExp, code?: string][] = [
    ['POST', create, undefined, /request body/],
    ['POST', create, [], /request body must be a JSON object/],
    ['POST', create, {}, /^kind is required/],
    ['POST', create, { kind: 'Running' }, /^kind must be one of Standby, Stopped/],
    ['POST', create, { kind: 'standby' }, /^kind/],
    ['POST', create, { kind: 'Standby', name: '' }, /^name/],
    ['POST', create, { kind: 'Standby', name: 'Upper' }, /^name/],
    ['POST', create, { kind: 'Standby', name: 'a-' }, /^name/],
    ['POST', create, { kind: 'Standby', name: '../a' }, /^name/],
    ['POST', create, { kind: 'Standby', name: 'a'.repeat(64) }, /^name/],
    ['POST', create, { kind: 'Standby', name: null }, /^name/],
    ['POST', create, { kind: 'Standby', tags: { 'bad,key': 'x' } }, /^tags/],
    ['POST', create, { kind: 'Standby', tags: { k: 1 } }, /^tags/],
    ['POST', create, { kind: 'Standby', tags: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, ''])) }, /^tags/],
    ['POST', create, { kind: 'Standby', tag: {} }, /^tag is not a known field/],
    ['POST', create, { kind: 'Standby', compression: {} }, /^compression.enabled/],
    ['POST', create, compression({ algorithm: 'gzip' }), /^compression.algorithm/],
    ['POST', create, compression({ level: 1.5 }), /^compression.level/],
    ['POST', create, compression({ level: 20 }), /^compression.level/],
    ['POST', create, compression({ level: -1 }), /^compression.level/],
    ['POST', create, compression({ algorithm: 'zstd', level: 0 }), /^compression.level/, 'invalid_snapshot_policy'],
    ['POST', create, compression({ algorithm: 'lz4', level: 10 }), /^compression.level/, 'invalid_snapshot_policy'],
    ['POST', create, { kind: 'Stopped', compression: { enabled: true, algorithm: 'lz4', level: 10 } }, /^compression.level/, 'invalid_snapshot_policy'],
    ['POST', fork, undefined, /request body/],
    ['POST', fork, {}, /^name is required/],
    ['POST', fork, { name: 'A' }, /^name/],
    ['POST', fork, { name: 'a'.repeat(64) }, /^name/],
    ['POST', fork, { name: 'a', target_state: 'Paused' }, /^target_state/],
    ['POST', fork, { name: 'a', target_hypervisor: 'Xen' }, /^target_hypervisor/],
    ['POST', fork, { name: 'a', from_running: true }, /^from_running/],
    ['POST', restore, { target_state: 'Created' }, /^target_state/],
    ['POST', restore, { target_hypervisor: '' }, /^target_hypervisor/],
    ['POST', restore, { name: 'a' }, /^name/],
    ['GET', '/snapshots?kind=x', undefined, /kind/],
    ['GET', '/snapshots?limit=0', undefined, /limit/],
    ['GET', '/snapshots?source=x', undefined, /source/],
    ['PUT', schedule, undefined, /request body/],
    ['PUT', schedule, {}, /interval is required/],
    ['PUT', schedule, { interval: '1h' }, /^retention is required/],
    ['PUT', schedule, set({ interval: 'daily' }), /^interval: "daily" is not a duration/],
    ['PUT', schedule, set({ interval: '1d' }), /^interval/],
    ['PUT', schedule, set({ interval: '' }), /^interval/],
    ['PUT', schedule, set({ interval: 3600 }), /^interval/],
    ['PUT', schedule, set({ interval: '-1h' }), /^interval/],
    ['PUT', schedule, set({ interval: '59s' }), /^interval: must be at least 1m/],
    ['PUT', schedule, set({ interval: '9999999h' }), /^interval: must be at most/],
    ['PUT', schedule, set({ retention: {} }), /^retention: max_count \(at least 1\) or max_age is needed/],
    ['PUT', schedule, set({ retention: { max_count: 0 } }), /^retention/],
    ['PUT', schedule, set({ retention: { max_count: -1 } }), /^retention.max_count/],
    ['PUT', schedule, set({ retention: { max_count: 1.5 } }), /^retention.max_count/],
    ['PUT', schedule, set({ retention: { max_age: 'x' } }), /^retention.max_age/],
    ['PUT', schedule, set({ retention: { max_age: '0s' } }), /^retention.max_age/],
    ['PUT', schedule, set({ retention: { max_age: '99999999999h' } }), /^retention.max_age/],
    ['PUT', schedule, set({ retention: { count: 1 } }), /^retention.count/],
    ['PUT', schedule, set({ name_prefix: 'a'.repeat(48) }), /^name_prefix/],
    ['PUT', schedule, set({ name_prefix: 'A' }), /^name_prefix/],
    ['PUT', schedule, set({ name_prefix: '' }), /^name_prefix/],
    ['PUT', schedule, set({ metadata: { 'bad,key': '' } }), /^metadata/],
    ['PUT', schedule, set({ metadata: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, ''])) }), /^metadata must have at most 49/],
    ['PUT', schedule, set({ enabled: true }), /^enabled/]
  ]
  for (const [method, url, body, message, code = 'invalid_request'] of table) {
    t.match(await call(method, url, body), { status: 400, body: { code, message } }, `${method} ${url} ${JSON.stringify(body)?.slice(0, 100)}`)
  }
  t.same((await call('GET', '/snapshots')).body, [])
})

t.test('what does not exist is not found', async (t) => {
  const { call } = await startWithSnapshots(t)
  const table: readonly ['GET' | 'POST' | 'PUT' | 'DELETE', string, unknown?][] = [
    ['POST', `${NOBODY}/snapshots`, { kind: 'Standby' }],
    ['GET', '/snapshots/x'],
    ['DELETE', '/snapshots/x'],
    ['POST', '/snapshots/x/fork', { name: 'a' }],
    ['POST', `${NOBODY}/snapshots/x/restore`],
    ['GET', `${NOBODY}/snapshot-schedule`],
    ['PUT', `${NOBODY}/snapshot-schedule`, { interval: '1h', retention: { max_count: 1 } }],
    ['DELETE', `${NOBODY}/snapshot-schedule`]
  ]
  for (const [method, url, body] of table) t.match(await call(method, url, body), { status: 404, body: { code: 'not_found' } }, `${method} ${url}`)
})

t.test('each route asks for its scope', async (t) => {
  const { app, make, waitFor, take } = await startWithSnapshots(t)
  await make('web')
  await waitFor('web', 'Running')
  const snapshot = await take('web')
  const schedule = '/instances/web/snapshot-schedule'
  const table: readonly ['GET' | 'POST' | 'PUT' | 'DELETE', string, string][] = [
    ['POST', '/instances/web/snapshots', 'snapshot:write'],
    ['GET', '/snapshots', 'snapshot:read'],
    ['GET', `/snapshots/${snapshot}`, 'snapshot:read'],
    ['DELETE', `/snapshots/${snapshot}`, 'snapshot:delete'],
    ['POST', `/snapshots/${snapshot}/fork`, 'instance:write'],
    ['POST', `/instances/web/snapshots/${snapshot}/restore`, 'instance:write'],
    ['GET', schedule, 'snapshot:read'],
    ['PUT', schedule, 'snapshot:write'],
    ['DELETE', schedule, 'snapshot:delete']
  ]
  const document = (await app.http.inject({ url: '/openapi.json' })).json()
  for (const [method, url, scope] of table) {
    t.equal((await app.http.inject({ method, url })).statusCode, 401, `${method} ${url} without a key`)
    const path = url.replace('/instances/web', '/instances/{id}').replace(snapshot, '{snapshotId}')
    t.match(document.paths[path][method.toLowerCase()].description, new RegExp(`\`${scope}\``))
  }
})

t.test('the OpenAPI document has one Instance, which the plugin instances describes', async (t) => {
  const { app } = await startWithSnapshots(t)
  const document = (await app.http.inject({ url: '/openapi.json' })).json()
  const answer = (path: string, status: number): unknown => document.paths[path].post.responses[status].content['application/json'].schema
  const instance = { $ref: '#/components/schemas/Instance' }
  t.same(answer('/instances', 201), instance)
  t.same(answer('/snapshots/{snapshotId}/fork', 201), instance)
  t.same(answer('/instances/{id}/snapshots/{snapshotId}/restore', 200), instance)
  for (const name of ['Instance', 'Snapshot', 'SnapshotSchedule']) t.type(document.components.schemas[name], 'object')
})

t.test('a create and a fork that are sent again under one key happen once', async (t) => {
  const { call, make, waitFor } = await startWithSnapshots(t)
  await make('web')
  await waitFor('web', 'Running')
  const twice = async (url: string, body: object): Promise<string> => {
    const [first, second] = [await call('POST', url, body, { 'idempotency-key': url }), await call('POST', url, body, { 'idempotency-key': url })]
    t.equal(first.status, 201)
    t.same(second.body, first.body)
    t.equal(second.headers['idempotent-replayed'], 'true')
    return String(first.body['id'])
  }
  const snapshot = await twice('/instances/web/snapshots', { kind: 'Standby', name: 'once' })
  await twice(`/snapshots/${snapshot}/fork`, { name: 'once' })
  t.equal((await call('GET', '/snapshots')).text.match(/"kind"/g)?.length, 1)
})
